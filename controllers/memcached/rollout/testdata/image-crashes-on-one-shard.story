# The image crashes on the second shard only. The first one stays updated until the user reverts
# the spec.

shards 3 at 1.6.38
image 1.6.45 crashes on cache-1
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                      cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                    cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                  cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                 cache-0 [1.6.38 announced]         cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop     cache-0 [1.6.38 announced]         cache-1 [1.6.38]                        cache-2 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                        cache-2 [1.6.38]
   4.3s  operator   Await cache-0                        cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                        cache-2 [1.6.38]
   6.3s  agent      cache-0 reports its start            cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                        cache-2 [1.6.38]
   6.3s  operator   PromoteTemplate cache-0              cache-0 [1.6.45]                   cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  operator   AnnounceStop cache-1                 cache-0 [1.6.45]                   cache-1 [1.6.38 announced]              cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.6s  agent      cache-1 reads the announced stop     cache-0 [1.6.45]                   cache-1 [1.6.38 announced]              cache-2 [1.6.38]
   6.6s  operator   UpdateInPlace cache-1                cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]       cache-2 [1.6.38]  1.6.38 → 1.6.45
   7.6s  kubelet    stops the container of cache-1       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]        cache-2 [1.6.38]
   7.6s  operator   Await cache-1                        cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]        cache-2 [1.6.38]  1.6.38 → 1.6.45
   9.6s  kubelet    starts 1.6.45 for cache-1            cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 broken]          cache-2 [1.6.38]
   9.6s  operator   RecordFailure cache-1                cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 broken, failed]  cache-2 [1.6.38]  image 1.6.45 crashes
   9.6s  operator   UpdateInPlace cache-1, rolling back  cache-0 [1.6.45]                   cache-1 [1.6.38 broken, failed]         cache-2 [1.6.38]  image 1.6.45 crashes
  10.6s  kubelet    stops the container of cache-1       cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]       cache-2 [1.6.38]
  10.6s  operator   requires intervention: UpdateFailed  cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]       cache-2 [1.6.38]  image 1.6.45 crashes
  12.6s  kubelet    starts 1.6.38 for cache-1            cache-0 [1.6.45]                   cache-1 [1.6.38, failed]                cache-2 [1.6.38]
  12.6s  agent      cache-1 reports its start            cache-0 [1.6.45]                   cache-1 [1.6.38, failed]                cache-2 [1.6.38]

spec 1.6.38
run
----
  12.6s  user       requests 1.6.38                   cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]
  12.6s  operator   Preflight cache-0                 cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.38
  15.6s  preflight  image 1.6.38 passes               cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]
  15.6s  operator   AnnounceStop cache-0              cache-0 [1.6.45 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  15.9s  agent      cache-0 reads the announced stop  cache-0 [1.6.45 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
  15.9s  operator   UpdateInPlace cache-0             cache-0 [1.6.45→1.6.38 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  16.9s  kubelet    stops the container of cache-0    cache-0 [1.6.45→1.6.38 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]
  16.9s  operator   Await cache-0                     cache-0 [1.6.45→1.6.38 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  18.9s  kubelet    starts 1.6.38 for cache-0         cache-0 [1.6.45→1.6.38]            cache-1 [1.6.38]  cache-2 [1.6.38]
  18.9s  agent      cache-0 reports its start         cache-0 [1.6.45→1.6.38]            cache-1 [1.6.38]  cache-2 [1.6.38]
  18.9s  operator   PromoteTemplate cache-0           cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  18.9s  operator   all up to date                    cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
