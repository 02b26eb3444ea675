# What went wrong is taken back outside of the windows, too.

shards 2 at 1.6.38
image 1.6.45 crashes
spec 1.6.45
run until Change cache-0
the window opens in 24h
run
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                        cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                        cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                        cache-1 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]              cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]              cache-1 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45 broken]          cache-1 [1.6.38]
   6.3s  operator  Note cache-0                   cache-0 [1.6.38→1.6.45 broken, failed]  cache-1 [1.6.38]  image 1.6.45 crashes
   6.3s  operator  Change cache-0 back            cache-0 [1.6.38 broken, failed]         cache-1 [1.6.38]  image 1.6.45 crashes
   7.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]
   7.3s  operator  needs a person: UpdateFailed   cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  image 1.6.45 crashes
   9.3s  kubelet   starts 1.6.38 for cache-0      cache-0 [1.6.38, failed]                cache-1 [1.6.38]
   9.3s  agent     cache-0 tells how it started   cache-0 [1.6.38, failed]                cache-1 [1.6.38]
