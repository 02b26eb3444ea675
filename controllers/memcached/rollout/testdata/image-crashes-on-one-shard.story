# The same on a shard in the middle: those before it stay where they are, and setting the spec back
# takes them back too.

shards 3 at 1.6.38
image 1.6.45 crashes on cache-1
spec 1.6.45
run
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]                        cache-2 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]                        cache-2 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                        cache-2 [1.6.38]
   4.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                        cache-2 [1.6.38]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                        cache-2 [1.6.38]
   6.3s  operator  Confirm cache-0                cache-0 [1.6.45]                   cache-1 [1.6.38]                        cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  operator  Announce cache-1               cache-0 [1.6.45]                   cache-1 [1.6.38 announced]              cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.6s  agent     cache-1 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.38 announced]              cache-2 [1.6.38]
   6.6s  operator  Change cache-1                 cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]       cache-2 [1.6.38]  1.6.38 → 1.6.45
   7.6s  kubelet   ends the container of cache-1  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]        cache-2 [1.6.38]
   7.6s  operator  Await cache-1                  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]        cache-2 [1.6.38]  1.6.38 → 1.6.45
   9.6s  kubelet   starts 1.6.45 for cache-1      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 broken]          cache-2 [1.6.38]
   9.6s  operator  Note cache-1                   cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 broken, failed]  cache-2 [1.6.38]  image 1.6.45 crashes
   9.6s  operator  Change cache-1 back            cache-0 [1.6.45]                   cache-1 [1.6.38 broken, failed]         cache-2 [1.6.38]  image 1.6.45 crashes
  10.6s  kubelet   ends the container of cache-1  cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]       cache-2 [1.6.38]
  10.6s  operator  needs a person: UpdateFailed   cache-0 [1.6.45]                   cache-1 [1.6.38 starting, failed]       cache-2 [1.6.38]  image 1.6.45 crashes
  12.6s  kubelet   starts 1.6.38 for cache-1      cache-0 [1.6.45]                   cache-1 [1.6.38, failed]                cache-2 [1.6.38]
  12.6s  agent     cache-1 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.38, failed]                cache-2 [1.6.38]

spec 1.6.38
run
----
  12.6s  person    asks for 1.6.38                cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]
  12.6s  operator  Prove cache-0                  cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]  proving image 1.6.38
  15.6s  proof     proves image 1.6.38            cache-0 [1.6.45]                   cache-1 [1.6.38]  cache-2 [1.6.38]
  15.6s  operator  Announce cache-0               cache-0 [1.6.45 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  15.9s  agent     cache-0 reads of its stop      cache-0 [1.6.45 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
  15.9s  operator  Change cache-0                 cache-0 [1.6.45→1.6.38 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  16.9s  kubelet   ends the container of cache-0  cache-0 [1.6.45→1.6.38 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]
  16.9s  operator  Await cache-0                  cache-0 [1.6.45→1.6.38 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  18.9s  kubelet   starts 1.6.38 for cache-0      cache-0 [1.6.45→1.6.38]            cache-1 [1.6.38]  cache-2 [1.6.38]
  18.9s  agent     cache-0 tells how it started   cache-0 [1.6.45→1.6.38]            cache-1 [1.6.38]  cache-2 [1.6.38]
  18.9s  operator  Confirm cache-0                cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.45 → 1.6.38
  18.9s  operator  is content                     cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
