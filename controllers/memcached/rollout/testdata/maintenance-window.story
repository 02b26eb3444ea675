# Outside of the maintenance windows no shard is touched; what goes on then is proving the image.

shards 2 at 1.6.38
the window opens in 90m
spec 1.6.45
run until Announce cache-0
----
   0.0s  person    asks for 1.6.45                   cache-0 [1.6.38]            cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                     cache-0 [1.6.38]            cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45               cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator  holds cache-0: MaintenanceWindow  cache-0 [1.6.38]            cache-1 [1.6.38]  waiting for the next maintenance window
5400.0s  operator  Announce cache-0                  cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45

# It closes in the middle: the shard that is out is brought to its end, and the next one waits.
run until Change cache-0
the window opens in 24h
run until holds cache-1
----
5400.0s  operator  Announce cache-0                  cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
5400.3s  agent     cache-0 reads of its stop         cache-0 [1.6.38 announced]         cache-1 [1.6.38]
5400.3s  operator  Change cache-0                    cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
5400.3s  operator  Await cache-0                     cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
5401.3s  kubelet   ends the container of cache-0     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
5403.3s  kubelet   starts 1.6.45 for cache-0         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
5403.3s  agent     cache-0 tells how it started      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
5403.3s  operator  Confirm cache-0                   cache-0 [1.6.45]                   cache-1 [1.6.38]  1.6.38 → 1.6.45
5403.3s  operator  holds cache-1: MaintenanceWindow  cache-0 [1.6.45]                   cache-1 [1.6.38]  waiting for the next maintenance window
