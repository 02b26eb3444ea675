# A downgrade is an update like any other.

shards 2 at 1.6.45
spec 1.6.18
run
----
   0.0s  user       requests 1.6.18                   cache-0 [1.6.45]                   cache-1 [1.6.45]
   0.0s  operator   Preflight cache-0                 cache-0 [1.6.45]                   cache-1 [1.6.45]                   checking image 1.6.18
   3.0s  preflight  image 1.6.18 passes               cache-0 [1.6.45]                   cache-1 [1.6.45]
   3.0s  operator   AnnounceStop cache-0              cache-0 [1.6.45 announced]         cache-1 [1.6.45]                   1.6.45 → 1.6.18
   3.3s  agent      cache-0 reads the announced stop  cache-0 [1.6.45 announced]         cache-1 [1.6.45]
   3.3s  operator   UpdateInPlace cache-0             cache-0 [1.6.45→1.6.18 announced]  cache-1 [1.6.45]                   1.6.45 → 1.6.18
   4.3s  kubelet    stops the container of cache-0    cache-0 [1.6.45→1.6.18 starting]   cache-1 [1.6.45]
   4.3s  operator   Await cache-0                     cache-0 [1.6.45→1.6.18 starting]   cache-1 [1.6.45]                   1.6.45 → 1.6.18
   6.3s  kubelet    starts 1.6.18 for cache-0         cache-0 [1.6.45→1.6.18]            cache-1 [1.6.45]
   6.3s  agent      cache-0 reports its start         cache-0 [1.6.45→1.6.18]            cache-1 [1.6.45]
   6.3s  operator   PromoteTemplate cache-0           cache-0 [1.6.18]                   cache-1 [1.6.45]                   1.6.45 → 1.6.18
   6.3s  operator   AnnounceStop cache-1              cache-0 [1.6.18]                   cache-1 [1.6.45 announced]         1.6.45 → 1.6.18
   6.6s  agent      cache-1 reads the announced stop  cache-0 [1.6.18]                   cache-1 [1.6.45 announced]
   6.6s  operator   UpdateInPlace cache-1             cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 announced]  1.6.45 → 1.6.18
   7.6s  kubelet    stops the container of cache-1    cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 starting]
   7.6s  operator   Await cache-1                     cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 starting]   1.6.45 → 1.6.18
   9.6s  kubelet    starts 1.6.18 for cache-1         cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18]
   9.6s  agent      cache-1 reports its start         cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18]
   9.6s  operator   PromoteTemplate cache-1           cache-0 [1.6.18]                   cache-1 [1.6.18]                   1.6.45 → 1.6.18
   9.6s  operator   all up to date                    cache-0 [1.6.18]                   cache-1 [1.6.18]
