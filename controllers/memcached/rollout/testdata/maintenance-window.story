# Outside the maintenance windows no shard is changed. Only the image is checked.

shards 2 at 1.6.38
the maintenance window opens in 90m
spec 1.6.45
run until AnnounceStop cache-0
----
   0.0s  user       requests 1.6.45                           cache-0 [1.6.38]            cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                         cache-0 [1.6.38]            cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                       cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator   blocks cache-0: OutsideMaintenanceWindow  cache-0 [1.6.38]            cache-1 [1.6.38]  waiting for the next maintenance window
5400.0s  operator   AnnounceStop cache-0                      cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45

# The window closes during an update: the shard is finished, and the next one waits.
run until UpdateInPlace cache-0
the maintenance window opens in 24h
run until blocks cache-1
----
5400.0s  operator  AnnounceStop cache-0                      cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
5400.3s  agent     cache-0 reads the announced stop          cache-0 [1.6.38 announced]         cache-1 [1.6.38]
5400.3s  operator  UpdateInPlace cache-0                     cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
5400.3s  operator  Await cache-0                             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
5401.3s  kubelet   stops the container of cache-0            cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
5403.3s  kubelet   starts 1.6.45 for cache-0                 cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
5403.3s  agent     cache-0 reports its start                 cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
5403.3s  operator  PromoteTemplate cache-0                   cache-0 [1.6.45]                   cache-1 [1.6.38]  1.6.38 → 1.6.45
5403.3s  operator  blocks cache-1: OutsideMaintenanceWindow  cache-0 [1.6.45]                   cache-1 [1.6.38]  waiting for the next maintenance window
