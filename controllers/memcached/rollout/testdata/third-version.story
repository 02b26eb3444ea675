# The person asks for a third version while the first shard restarts with the second. The shard
# settles first; then it goes on to the third, and the others go there at once.

shards 3 at 1.6.18
spec 1.6.38
run until cache-0 [1.6.18→1.6.38 starting]
----
   0.0s  person    asks for 1.6.38                cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]  proving image 1.6.38
   3.0s  proof     proves image 1.6.38            cache-0 [1.6.18]                   cache-1 [1.6.18]  cache-2 [1.6.18]
   3.0s  operator  Announce cache-0               cache-0 [1.6.18 announced]         cache-1 [1.6.18]  cache-2 [1.6.18]  1.6.18 → 1.6.38
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.18 announced]         cache-1 [1.6.18]  cache-2 [1.6.18]
   3.3s  operator  Change cache-0                 cache-0 [1.6.18→1.6.38 announced]  cache-1 [1.6.18]  cache-2 [1.6.18]  1.6.18 → 1.6.38
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]  cache-2 [1.6.18]

spec 1.6.45
run
----
   4.3s  person    asks for 1.6.45                cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]
   4.3s  operator  Await cache-0                  cache-0 [1.6.18→1.6.38 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.38 for cache-0      cache-0 [1.6.18→1.6.38]            cache-1 [1.6.18]                   cache-2 [1.6.18]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.18→1.6.38]            cache-1 [1.6.18]                   cache-2 [1.6.18]
   6.3s  operator  Confirm cache-0                cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   6.3s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   proving image 1.6.45
   9.3s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.18]                   cache-2 [1.6.18]
   9.3s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
   9.6s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.18]                   cache-2 [1.6.18]
   9.6s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  10.6s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]
  10.6s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  12.6s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.18]                   cache-2 [1.6.18]
  12.6s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45]            cache-1 [1.6.18]                   cache-2 [1.6.18]
  12.6s  operator  Confirm cache-0                cache-0 [1.6.45]                   cache-1 [1.6.18]                   cache-2 [1.6.18]                   1.6.38 → 1.6.45
  12.6s  operator  Announce cache-1               cache-0 [1.6.45]                   cache-1 [1.6.18 announced]         cache-2 [1.6.18]                   1.6.18 → 1.6.45
  12.9s  agent     cache-1 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.18 announced]         cache-2 [1.6.18]
  12.9s  operator  Change cache-1                 cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 announced]  cache-2 [1.6.18]                   1.6.18 → 1.6.45
  13.9s  kubelet   ends the container of cache-1  cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 starting]   cache-2 [1.6.18]
  13.9s  operator  Await cache-1                  cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45 starting]   cache-2 [1.6.18]                   1.6.18 → 1.6.45
  15.9s  kubelet   starts 1.6.45 for cache-1      cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45]            cache-2 [1.6.18]
  15.9s  agent     cache-1 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.18→1.6.45]            cache-2 [1.6.18]
  15.9s  operator  Confirm cache-1                cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18]                   1.6.18 → 1.6.45
  15.9s  operator  Announce cache-2               cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18 announced]         1.6.18 → 1.6.45
  16.2s  agent     cache-2 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18 announced]
  16.2s  operator  Change cache-2                 cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 announced]  1.6.18 → 1.6.45
  17.2s  kubelet   ends the container of cache-2  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 starting]
  17.2s  operator  Await cache-2                  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45 starting]   1.6.18 → 1.6.45
  19.2s  kubelet   starts 1.6.45 for cache-2      cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45]
  19.2s  agent     cache-2 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.18→1.6.45]
  19.2s  operator  Confirm cache-2                cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]                   1.6.18 → 1.6.45
  19.2s  operator  is content                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]
