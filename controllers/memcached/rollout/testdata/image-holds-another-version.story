# An image that holds another memcached than its tag says is not proven either. On one node only,
# where a proof has passed before the tag was moved, it is found out by the shard, which goes back.

shards 2 at 1.6.38
image 1.6.45 is really 1.6.44
spec 1.6.45
run
----
   0.0s  person    asks for 1.6.45                 cache-0 [1.6.38]  cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                   cache-0 [1.6.38]  cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     refuses image 1.6.45            cache-0 [1.6.38]  cache-1 [1.6.38]
   3.0s  operator  needs a person: ImageNotProven  cache-0 [1.6.38]  cache-1 [1.6.38]  image 1.6.45 is really 1.6.44

image 1.6.45 is mended
image 1.6.45 is really 1.6.44 on cache-1
run
----
   3.0s  person    mends image 1.6.45              cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator  needs a person: ImageNotProven  cache-0 [1.6.38]                   cache-1 [1.6.38]                           image 1.6.45 is really 1.6.44
 303.0s  clock     the proof is made anew          cache-0 [1.6.38]                   cache-1 [1.6.38]
 303.0s  operator  Prove cache-0                   cache-0 [1.6.38]                   cache-1 [1.6.38]                           proving image 1.6.45
 306.0s  proof     proves image 1.6.45             cache-0 [1.6.38]                   cache-1 [1.6.38]
 306.0s  operator  Announce cache-0                cache-0 [1.6.38 announced]         cache-1 [1.6.38]                           1.6.38 → 1.6.45
 306.3s  agent     cache-0 reads of its stop       cache-0 [1.6.38 announced]         cache-1 [1.6.38]
 306.3s  operator  Change cache-0                  cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                           1.6.38 → 1.6.45
 307.3s  kubelet   ends the container of cache-0   cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
 307.3s  operator  Await cache-0                   cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                           1.6.38 → 1.6.45
 309.3s  kubelet   starts 1.6.45 for cache-0       cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
 309.3s  agent     cache-0 tells how it started    cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
 309.3s  operator  Confirm cache-0                 cache-0 [1.6.45]                   cache-1 [1.6.38]                           1.6.38 → 1.6.45
 309.3s  operator  Announce cache-1                cache-0 [1.6.45]                   cache-1 [1.6.38 announced]                 1.6.38 → 1.6.45
 309.6s  agent     cache-1 reads of its stop       cache-0 [1.6.45]                   cache-1 [1.6.38 announced]
 309.6s  operator  Change cache-1                  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]          1.6.38 → 1.6.45
 310.6s  kubelet   ends the container of cache-1   cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]
 310.6s  operator  Await cache-1                   cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]           1.6.38 → 1.6.45
 312.6s  kubelet   starts 1.6.45 for cache-1       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 312.6s  agent     cache-1 tells how it started    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 312.6s  operator  Note cache-1                    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45, failed]            the image is really 1.6.44
 312.6s  operator  Announce cache-1 back           cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced, failed]  the image is really 1.6.44
 312.9s  agent     cache-1 reads of its stop       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced, failed]
 312.9s  operator  Change cache-1 back             cache-0 [1.6.45]                   cache-1 [1.6.38 announced, failed]         the image is really 1.6.44
 313.9s  kubelet   ends the container of cache-1   cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]
 313.9s  operator  needs a person: UpdateFailed    cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]          the image is really 1.6.44
 315.9s  kubelet   starts 1.6.38 for cache-1       cache-0 [1.6.45]                   cache-1 [1.6.38, failed]
 315.9s  agent     cache-1 tells how it started    cache-0 [1.6.45]                   cache-1 [1.6.38, failed]
