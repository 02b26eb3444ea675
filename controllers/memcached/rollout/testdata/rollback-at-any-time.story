# A failed update is rolled back outside the maintenance windows, too.

shards 2 at 1.6.38
image 1.6.45 crashes
spec 1.6.45
run until UpdateInPlace cache-0
the maintenance window opens in 24h
run
----
   0.0s  user       requests 1.6.45                      cache-0 [1.6.38]                        cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                    cache-0 [1.6.38]                        cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                  cache-0 [1.6.38]                        cache-1 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                 cache-0 [1.6.38 announced]              cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop     cache-0 [1.6.38 announced]              cache-1 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  operator   Await cache-0                        cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]
   6.3s  kubelet    starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45 broken]          cache-1 [1.6.38]
   6.3s  operator   RecordFailure cache-0                cache-0 [1.6.38→1.6.45 broken, failed]  cache-1 [1.6.38]  image 1.6.45 crashes
   6.3s  operator   UpdateInPlace cache-0, rolling back  cache-0 [1.6.38 broken, failed]         cache-1 [1.6.38]  image 1.6.45 crashes
   7.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]
   7.3s  operator   requires intervention: UpdateFailed  cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  image 1.6.45 crashes
   9.3s  kubelet    starts 1.6.38 for cache-0            cache-0 [1.6.38, failed]                cache-1 [1.6.38]
   9.3s  agent      cache-0 reports its start            cache-0 [1.6.38, failed]                cache-1 [1.6.38]
