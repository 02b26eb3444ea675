# A shard that is out holds all the others, whatever it is out for.

shards 3 at 1.6.38
image 1.6.38 crashes on cache-2
crash cache-2
run
----
   0.0s  kernel    kills memcached of cache-2       cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]
   0.0s  operator  is content                       cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]
  10.0s  kubelet   starts 1.6.38 for cache-2 again  cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]

# Nothing but what mends it: its pod is made anew with the version that is asked for, once that is
# proven. Then the others.
spec 1.6.45
run
----
  10.0s  person      asks for 1.6.45                    cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]
  10.0s  operator    Prove cache-2                      cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]               proving image 1.6.45
  13.0s  proof       proves image 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]
  13.0s  operator    Remake cache-2                     cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken, next 1.6.45]  1.6.38 → 1.6.45
  14.0s  kubelet     the pod 1.6.38 of cache-2 is gone  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 no pod]
  14.0s  operator    holds cache-0: ShardOut            cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 no pod]               shard cache-2 does not serve, and two shards must not be out at once
  14.0s  ReplicaSet  makes a pod for cache-2            cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 starting]
  14.0s  operator    holds cache-0: ShardsNotSettled    cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 starting]             waiting for shard cache-2, which starts
  16.0s  kubelet     starts 1.6.45 for cache-2          cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.0s  operator    holds cache-0: ShardsNotSettled    cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                waiting for shard cache-2, which has not told yet how it started
  16.0s  agent       cache-2 tells how it started       cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.0s  operator    Announce cache-0                   cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  16.3s  agent       cache-0 reads of its stop          cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.3s  operator    Change cache-0                     cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  17.3s  kubelet     ends the container of cache-0      cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  17.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.3s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  19.3s  agent       cache-0 tells how it started       cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  19.3s  operator    Confirm cache-0                    cache-0 [1.6.45]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.3s  operator    Announce cache-1                   cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.6s  agent       cache-1 reads of its stop          cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.45 empty]
  19.6s  operator    Change cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  20.6s  kubelet     ends the container of cache-1      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.45 empty]
  20.6s  operator    Await cache-1                      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  22.6s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.45 empty]
  22.6s  agent       cache-1 tells how it started       cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.45 empty]
  22.6s  operator    Confirm cache-1                    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  22.6s  operator    is content                         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45 empty]
