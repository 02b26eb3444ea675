# The next shard waits until the clients of the one before find again what they found.

shards 2 at 1.6.38
hit ratio gate of 10m, then Stop
clients find as much as before after 45s
spec 1.6.45
run
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]                   proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
   4.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  operator  Confirm cache-0                cache-0 [1.6.45]                   cache-1 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  operator  holds cache-1: HitRatio        cache-0 [1.6.45]                   cache-1 [1.6.38]                   waiting until shard cache-0 finds 90 % of what it found before its change, a hit ratio of 95.0 %
  51.3s  operator  Announce cache-1               cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
  51.6s  agent     cache-1 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.38 announced]
  51.6s  operator  Change cache-1                 cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  52.6s  kubelet   ends the container of cache-1  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]
  52.6s  operator  Await cache-1                  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  54.6s  kubelet   starts 1.6.45 for cache-1      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
  54.6s  agent     cache-1 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
  54.6s  operator  Confirm cache-1                cache-0 [1.6.45]                   cache-1 [1.6.45]                   1.6.38 → 1.6.45
  54.6s  operator  is content                     cache-0 [1.6.45]                   cache-1 [1.6.45]
