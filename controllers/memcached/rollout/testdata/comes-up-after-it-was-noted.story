# A version crashes once and comes up at the next try, when it was noted already: it is taken back all
# the same. What failed once is not trusted with the other shards unless the person wants that.

shards 2 at 1.6.38
image 1.6.45 crashes
spec 1.6.45
run until Note cache-0
image 1.6.45 is mended
come up cache-0
run
----
   0.0s  person    asks for 1.6.45                  cache-0 [1.6.38]                           cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                    cache-0 [1.6.38]                           cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45              cache-0 [1.6.38]                           cache-1 [1.6.38]
   3.0s  operator  Announce cache-0                 cache-0 [1.6.38 announced]                 cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop        cache-0 [1.6.38 announced]                 cache-1 [1.6.38]
   3.3s  operator  Change cache-0                   cache-0 [1.6.38→1.6.45 announced]          cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0    cache-0 [1.6.38→1.6.45 starting]           cache-1 [1.6.38]
   4.3s  operator  Await cache-0                    cache-0 [1.6.38→1.6.45 starting]           cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0        cache-0 [1.6.38→1.6.45 broken]             cache-1 [1.6.38]
   6.3s  operator  Note cache-0                     cache-0 [1.6.38→1.6.45 broken, failed]     cache-1 [1.6.38]  image 1.6.45 crashes
   6.3s  person    mends image 1.6.45               cache-0 [1.6.38→1.6.45 broken, failed]     cache-1 [1.6.38]
   6.3s  kubelet   starts 1.6.45 for cache-0 again  cache-0 [1.6.38→1.6.45, failed]            cache-1 [1.6.38]
   6.3s  operator  Announce cache-0 back            cache-0 [1.6.38→1.6.45 announced, failed]  cache-1 [1.6.38]  image 1.6.45 crashes
   6.6s  agent     cache-0 reads of its stop        cache-0 [1.6.38→1.6.45 announced, failed]  cache-1 [1.6.38]
   6.6s  agent     cache-0 tells how it started     cache-0 [1.6.38→1.6.45 announced, failed]  cache-1 [1.6.38]
   6.6s  operator  Change cache-0 back              cache-0 [1.6.38 announced, failed]         cache-1 [1.6.38]  image 1.6.45 crashes
   7.6s  kubelet   ends the container of cache-0    cache-0 [1.6.38 starting, failed]          cache-1 [1.6.38]
   7.6s  operator  needs a person: UpdateFailed     cache-0 [1.6.38 starting, failed]          cache-1 [1.6.38]  image 1.6.45 crashes
   9.6s  kubelet   starts 1.6.38 for cache-0        cache-0 [1.6.38, failed]                   cache-1 [1.6.38]
   9.6s  agent     cache-0 tells how it started     cache-0 [1.6.38, failed]                   cache-1 [1.6.38]
