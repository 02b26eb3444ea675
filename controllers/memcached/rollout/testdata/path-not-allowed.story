# Nobody knows whether 1.7 reads what 1.6 saved, so it is not done unless the person gives the items
# up. Then each shard is replaced.

shards 2 at 1.6.45
spec 1.7.0
run
----
   0.0s  person    asks for 1.7.0                  cache-0 [1.6.45]  cache-1 [1.6.45]
   0.0s  operator  needs a person: PathNotAllowed  cache-0 [1.6.45]  cache-1 [1.6.45]  nobody knows whether 1.7.0 reads the items of 1.6.45

when not warm Continue
run
----
   0.0s  person      says: when not warm, Continue      cache-0 [1.6.45]                   cache-1 [1.6.45]
   0.0s  operator    Surge cache-0                      cache-0 [1.6.45, next 1.7.0]       cache-1 [1.6.45]                   1.6.45 → 1.7.0
   0.0s  ReplicaSet  makes a pod for cache-0            cache-0 [1.6.45 + 1.7.0 starting]  cache-1 [1.6.45]
   0.0s  operator    Await cache-0                      cache-0 [1.6.45 + 1.7.0 starting]  cache-1 [1.6.45]                   1.6.45 → 1.7.0
   2.0s  kubelet     starts 1.7.0 for cache-0           cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]
   2.0s  operator    Retire cache-0                     cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]                   1.6.45 → 1.7.0
   2.0s  agent       cache-0 tells how it started       cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]
   2.0s  ReplicaSet  ends the pod 1.6.45 of cache-0     cache-0 [1.7.0 empty]              cache-1 [1.6.45]
   2.0s  operator    holds cache-1: ShardsNotSettled    cache-0 [1.7.0 empty]              cache-1 [1.6.45]                   waiting for shard cache-0, which waits for the end of its former pod
   3.0s  kubelet     the pod 1.6.45 of cache-0 is gone  cache-0 [1.7.0 empty]              cache-1 [1.6.45]
   3.0s  operator    Surge cache-1                      cache-0 [1.7.0 empty]              cache-1 [1.6.45, next 1.7.0]       1.6.45 → 1.7.0
   3.0s  ReplicaSet  makes a pod for cache-1            cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 starting]
   3.0s  operator    Await cache-1                      cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 starting]  1.6.45 → 1.7.0
   5.0s  kubelet     starts 1.7.0 for cache-1           cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]
   5.0s  operator    Retire cache-1                     cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]     1.6.45 → 1.7.0
   5.0s  agent       cache-1 tells how it started       cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]
   5.0s  ReplicaSet  ends the pod 1.6.45 of cache-1     cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
   5.0s  operator    is content                         cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
   6.0s  kubelet     the pod 1.6.45 of cache-1 is gone  cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
