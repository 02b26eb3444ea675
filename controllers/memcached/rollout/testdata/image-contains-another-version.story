# An image that contains another version than its tag says fails its checks. If the tag moves after
# the checks, the shard reports the version and is rolled back.

shards 2 at 1.6.38
image 1.6.45 contains 1.6.44
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                          cache-0 [1.6.38]  cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                        cache-0 [1.6.38]  cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 fails                       cache-0 [1.6.38]  cache-1 [1.6.38]
   3.0s  operator   requires intervention: ImageNotVerified  cache-0 [1.6.38]  cache-1 [1.6.38]  image 1.6.45 contains 1.6.44

image 1.6.45 is fixed
image 1.6.45 contains 1.6.44 on cache-1
run
----
   3.0s  user       fixes image 1.6.45                       cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator   requires intervention: ImageNotVerified  cache-0 [1.6.38]                   cache-1 [1.6.38]                           image 1.6.45 contains 1.6.44
 303.0s  clock      the preflight check is due again         cache-0 [1.6.38]                   cache-1 [1.6.38]
 303.0s  operator   Preflight cache-0                        cache-0 [1.6.38]                   cache-1 [1.6.38]                           checking image 1.6.45
 306.0s  preflight  image 1.6.45 passes                      cache-0 [1.6.38]                   cache-1 [1.6.38]
 306.0s  operator   AnnounceStop cache-0                     cache-0 [1.6.38 announced]         cache-1 [1.6.38]                           1.6.38 → 1.6.45
 306.3s  agent      cache-0 reads the announced stop         cache-0 [1.6.38 announced]         cache-1 [1.6.38]
 306.3s  operator   UpdateInPlace cache-0                    cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                           1.6.38 → 1.6.45
 307.3s  kubelet    stops the container of cache-0           cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
 307.3s  operator   Await cache-0                            cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                           1.6.38 → 1.6.45
 309.3s  kubelet    starts 1.6.45 for cache-0                cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
 309.3s  agent      cache-0 reports its start                cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
 309.3s  operator   PromoteTemplate cache-0                  cache-0 [1.6.45]                   cache-1 [1.6.38]                           1.6.38 → 1.6.45
 309.3s  operator   AnnounceStop cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.38 announced]                 1.6.38 → 1.6.45
 309.6s  agent      cache-1 reads the announced stop         cache-0 [1.6.45]                   cache-1 [1.6.38 announced]
 309.6s  operator   UpdateInPlace cache-1                    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]          1.6.38 → 1.6.45
 310.6s  kubelet    stops the container of cache-1           cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]
 310.6s  operator   Await cache-1                            cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]           1.6.38 → 1.6.45
 312.6s  kubelet    starts 1.6.45 for cache-1                cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 312.6s  agent      cache-1 reports its start                cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 312.6s  operator   RecordFailure cache-1                    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45, failed]            the image contains 1.6.44
 312.6s  operator   AnnounceStop cache-1, rolling back       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced, failed]  the image contains 1.6.44
 312.9s  agent      cache-1 reads the announced stop         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced, failed]
 312.9s  operator   UpdateInPlace cache-1, rolling back      cache-0 [1.6.45]                   cache-1 [1.6.38 announced, failed]         the image contains 1.6.44
 313.9s  kubelet    stops the container of cache-1           cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]
 313.9s  operator   requires intervention: UpdateFailed      cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]          the image contains 1.6.44
 315.9s  kubelet    starts 1.6.38 for cache-1                cache-0 [1.6.45]                   cache-1 [1.6.38, failed]
 315.9s  agent      cache-1 reports its start                cache-0 [1.6.45]                   cache-1 [1.6.38, failed]
