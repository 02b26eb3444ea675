# The person wants ten minutes between two shards.

shards 2 at 1.6.38
at least 10m between shards
spec 1.6.45
run
----
   0.0s  person    asks for 1.6.45                      cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                        cache-0 [1.6.38]                   cache-1 [1.6.38]                   proving image 1.6.45
   3.0s  proof     proves image 1.6.45                  cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator  Announce cache-0                     cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop            cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator  Change cache-0                       cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0        cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
   4.3s  operator  Await cache-0                        cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  agent     cache-0 tells how it started         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  operator  Confirm cache-0                      cache-0 [1.6.45]                   cache-1 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  operator  holds cache-1: MinTimeBetweenShards  cache-0 [1.6.45]                   cache-1 [1.6.38]                   waiting until 10m0s have passed since the last shard
 603.3s  operator  Announce cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
 603.6s  agent     cache-1 reads of its stop            cache-0 [1.6.45]                   cache-1 [1.6.38 announced]
 603.6s  operator  Change cache-1                       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
 604.6s  kubelet   ends the container of cache-1        cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]
 604.6s  operator  Await cache-1                        cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
 606.6s  kubelet   starts 1.6.45 for cache-1            cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 606.6s  agent     cache-1 tells how it started         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]
 606.6s  operator  Confirm cache-1                      cache-0 [1.6.45]                   cache-1 [1.6.45]                   1.6.38 → 1.6.45
 606.6s  operator  is content                           cache-0 [1.6.45]                   cache-1 [1.6.45]
