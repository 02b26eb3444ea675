# An older version is a version like any other.

shards 2 at 1.6.45
spec 1.6.18
run
----
   0.0s  person    asks for 1.6.18                cache-0 [1.6.45]                   cache-1 [1.6.45]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.45]                   cache-1 [1.6.45]                   proving image 1.6.18
   3.0s  proof     proves image 1.6.18            cache-0 [1.6.45]                   cache-1 [1.6.45]
   3.0s  operator  Announce cache-0               cache-0 [1.6.45 announced]         cache-1 [1.6.45]                   1.6.45 → 1.6.18
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.45 announced]         cache-1 [1.6.45]
   3.3s  operator  Change cache-0                 cache-0 [1.6.45→1.6.18 announced]  cache-1 [1.6.45]                   1.6.45 → 1.6.18
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.45→1.6.18 starting]   cache-1 [1.6.45]
   4.3s  operator  Await cache-0                  cache-0 [1.6.45→1.6.18 starting]   cache-1 [1.6.45]                   1.6.45 → 1.6.18
   6.3s  kubelet   starts 1.6.18 for cache-0      cache-0 [1.6.45→1.6.18]            cache-1 [1.6.45]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.45→1.6.18]            cache-1 [1.6.45]
   6.3s  operator  Confirm cache-0                cache-0 [1.6.18]                   cache-1 [1.6.45]                   1.6.45 → 1.6.18
   6.3s  operator  Announce cache-1               cache-0 [1.6.18]                   cache-1 [1.6.45 announced]         1.6.45 → 1.6.18
   6.6s  agent     cache-1 reads of its stop      cache-0 [1.6.18]                   cache-1 [1.6.45 announced]
   6.6s  operator  Change cache-1                 cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 announced]  1.6.45 → 1.6.18
   7.6s  kubelet   ends the container of cache-1  cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 starting]
   7.6s  operator  Await cache-1                  cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18 starting]   1.6.45 → 1.6.18
   9.6s  kubelet   starts 1.6.18 for cache-1      cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18]
   9.6s  agent     cache-1 tells how it started   cache-0 [1.6.18]                   cache-1 [1.6.45→1.6.18]
   9.6s  operator  Confirm cache-1                cache-0 [1.6.18]                   cache-1 [1.6.18]                   1.6.45 → 1.6.18
   9.6s  operator  is content                     cache-0 [1.6.18]                   cache-1 [1.6.18]
