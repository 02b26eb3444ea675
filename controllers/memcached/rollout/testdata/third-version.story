# The user requests a third version while the first shard restarts with the second. That shard
# finishes first. Then all are updated to the third.

shards 3 at 1.6.18
spec 1.6.38
run until cache-0 [1.6.18→1.6.38 starting]
----
   0.0s  user       requests 1.6.38                   cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]
   0.0s  operator   Preflight cache-0                 cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]  checking image 1.6.38
   3.0s  preflight  image 1.6.38 passes               cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]
   3.0s  operator   AnnounceStop cache-0              cache-0 [1.6.18 announced]         cache-1 [1.6.18]  cache-2 [1.6.18]  1.6.18 → 1.6.38
   3.3s  agent      cache-0 reads the announced stop  cache-0 [1.6.18 announced]         cache-1 [1.6.18]  cache-2 [1.6.18]
   3.3s  operator   UpdateInPlace cache-0             cache-0 [1.6.18→1.6.38 announced]  cache-1 [1.6.18]  cache-2 [1.6.18]  1.6.18 → 1.6.38
   4.3s  kubelet    stops the container of cache-0    cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]  cache-2 [1.6.18]

spec 1.6.45
run
----
   4.3s  user       requests 1.6.45                   cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]
   4.3s  operator   Await cache-0                     cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.38 for cache-0         cache-0 [1.6.18→1.6.38]            cache-1 [1.6.18]                   cache-2 [1.6.18]
   6.3s  agent      cache-0 reports its start         cache-0 [1.6.18→1.6.38]            cache-1 [1.6.18]                   cache-2 [1.6.18]
   6.3s  operator   PromoteTemplate cache-0           cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   6.3s  operator   Preflight cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   checking image 1.6.45
   9.3s  preflight  image 1.6.45 passes               cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]
   9.3s  operator   AnnounceStop cache-0              cache-0 [1.6.38 announced]         cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   9.6s  agent      cache-0 reads the announced stop  cache-0 [1.6.38 announced]         cache-1 [1.6.18]                   cache-2 [1.6.18]
   9.6s  operator   UpdateInPlace cache-0             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  10.6s  kubelet    stops the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]
  10.6s  operator   Await cache-0                     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  12.6s  kubelet    starts 1.6.45 for cache-0         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.18]                   cache-2 [1.6.18]
  12.6s  agent      cache-0 reports its start         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.18]                   cache-2 [1.6.18]
  12.6s  operator   PromoteTemplate cache-0           cache-0 [1.6.45]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  12.6s  operator   AnnounceStop cache-1              cache-0 [1.6.45]                   cache-1 [1.6.18 announced]         cache-2 [1.6.18]                   1.6.18 → 1.6.45
  12.9s  agent      cache-1 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.18 announced]         cache-2 [1.6.18]
  12.9s  operator   UpdateInPlace cache-1             cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 announced]  cache-2 [1.6.18]                   1.6.18 → 1.6.45
  13.9s  kubelet    stops the container of cache-1    cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 starting]   cache-2 [1.6.18]
  13.9s  operator   Await cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 starting]   cache-2 [1.6.18]                   1.6.18 → 1.6.45
  15.9s  kubelet    starts 1.6.45 for cache-1         cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45]            cache-2 [1.6.18]
  15.9s  agent      cache-1 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45]            cache-2 [1.6.18]
  15.9s  operator   PromoteTemplate cache-1           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18]                   1.6.18 → 1.6.45
  15.9s  operator   AnnounceStop cache-2              cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18 announced]         1.6.18 → 1.6.45
  16.2s  agent      cache-2 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18 announced]
  16.2s  operator   UpdateInPlace cache-2             cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 announced]  1.6.18 → 1.6.45
  17.2s  kubelet    stops the container of cache-2    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 starting]
  17.2s  operator   Await cache-2                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 starting]   1.6.18 → 1.6.45
  19.2s  kubelet    starts 1.6.45 for cache-2         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45]
  19.2s  agent      cache-2 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45]
  19.2s  operator   PromoteTemplate cache-2           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]                   1.6.18 → 1.6.45
  19.2s  operator   all up to date                    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]
