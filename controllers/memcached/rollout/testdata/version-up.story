# An upgrade within a release series: the image is checked on the nodes, then each shard in turn
# is notified of the restart, restarts with its items, and is verified.

shards 3 at 1.6.38
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                   cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes               cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
   3.0s  operator   AnnounceStop cache-0              cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop  cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]
   4.3s  operator   Await cache-0                     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
   6.3s  agent      cache-0 reports its start         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
   6.3s  operator   PromoteTemplate cache-0           cache-0 [1.6.45]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  operator   AnnounceStop cache-1              cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
   6.6s  agent      cache-1 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]
   6.6s  operator   UpdateInPlace cache-1             cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  cache-2 [1.6.38]                   1.6.38 → 1.6.45
   7.6s  kubelet    stops the container of cache-1    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]
   7.6s  operator   Await cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   9.6s  kubelet    starts 1.6.45 for cache-1         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
   9.6s  agent      cache-1 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
   9.6s  operator   PromoteTemplate cache-1           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   9.6s  operator   AnnounceStop cache-2              cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]         1.6.38 → 1.6.45
   9.9s  agent      cache-2 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]
   9.9s  operator   UpdateInPlace cache-2             cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  10.9s  kubelet    stops the container of cache-2    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]
  10.9s  operator   Await cache-2                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  12.9s  kubelet    starts 1.6.45 for cache-2         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  12.9s  agent      cache-2 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  12.9s  operator   PromoteTemplate cache-2           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]                   1.6.38 → 1.6.45
  12.9s  operator   all up to date                    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]
