# A shard loses items that it should have kept. By default it is rolled back, and the others keep
# their items.

shards 3 at 1.6.38
image 1.6.45 loses the items
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                      cache-0 [1.6.38]                                 cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                    cache-0 [1.6.38]                                 cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                  cache-0 [1.6.38]                                 cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                 cache-0 [1.6.38 announced]                       cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop     cache-0 [1.6.38 announced]                       cache-1 [1.6.38]  cache-2 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                cache-0 [1.6.38→1.6.45 announced]                cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]  cache-2 [1.6.38]
   4.3s  operator   Await cache-0                        cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]  cache-2 [1.6.38]
   6.3s  agent      cache-0 reports its start            cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]  cache-2 [1.6.38]
   6.3s  operator   RecordFailure cache-0                cache-0 [1.6.38→1.6.45 empty, failed]            cache-1 [1.6.38]  cache-2 [1.6.38]  it started empty
   6.3s  operator   AnnounceStop cache-0, rolling back   cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  it started empty
   6.6s  agent      cache-0 reads the announced stop     cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]
   6.6s  operator   UpdateInPlace cache-0, rolling back  cache-0 [1.6.38 empty announced, failed]         cache-1 [1.6.38]  cache-2 [1.6.38]  it started empty
   7.6s  kubelet    stops the container of cache-0       cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]
   7.6s  operator   requires intervention: UpdateFailed  cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]  it started empty
   9.6s  kubelet    starts 1.6.38 for cache-0            cache-0 [1.6.38, failed]                         cache-1 [1.6.38]  cache-2 [1.6.38]
   9.6s  agent      cache-0 reports its start            cache-0 [1.6.38, failed]                         cache-1 [1.6.38]  cache-2 [1.6.38]
