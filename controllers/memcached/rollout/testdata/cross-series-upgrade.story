# memcached 1.7 may not be able to read items saved by 1.6. No shard is changed unless the user
# allows it; then each shard is replaced.

shards 2 at 1.6.45
spec 1.7.0
run
----
   0.0s  user      requests 1.7.0                               cache-0 [1.6.45]  cache-1 [1.6.45]
   0.0s  operator  requires intervention: UpdatePathNotAllowed  cache-0 [1.6.45]  cache-1 [1.6.45]  1.7.0 may not be able to read items saved by 1.6.45

crossSeriesUpgrade Allow
run
----
   0.0s  user        sets crossSeriesUpgrade to Allow   cache-0 [1.6.45]                   cache-1 [1.6.45]
   0.0s  operator    Surge cache-0                      cache-0 [1.6.45, next 1.7.0]       cache-1 [1.6.45]                   1.6.45 → 1.7.0
   0.0s  ReplicaSet  creates a pod for cache-0          cache-0 [1.6.45 + 1.7.0 starting]  cache-1 [1.6.45]
   0.0s  operator    Await cache-0                      cache-0 [1.6.45 + 1.7.0 starting]  cache-1 [1.6.45]                   1.6.45 → 1.7.0
   2.0s  kubelet     starts 1.7.0 for cache-0           cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]
   2.0s  operator    Drain cache-0                      cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]                   1.6.45 → 1.7.0
   2.0s  agent       cache-0 reports its start          cache-0 [1.6.45 + 1.7.0 empty]     cache-1 [1.6.45]
   2.0s  ReplicaSet  deletes the pod 1.6.45 of cache-0  cache-0 [1.7.0 empty]              cache-1 [1.6.45]
   2.0s  operator    blocks cache-1: ShardInTransition  cache-0 [1.7.0 empty]              cache-1 [1.6.45]                   waiting for shard cache-0, which has a former pod that is still terminating
   3.0s  kubelet     removes the pod 1.6.45 of cache-0  cache-0 [1.7.0 empty]              cache-1 [1.6.45]
   3.0s  operator    Surge cache-1                      cache-0 [1.7.0 empty]              cache-1 [1.6.45, next 1.7.0]       1.6.45 → 1.7.0
   3.0s  ReplicaSet  creates a pod for cache-1          cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 starting]
   3.0s  operator    Await cache-1                      cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 starting]  1.6.45 → 1.7.0
   5.0s  kubelet     starts 1.7.0 for cache-1           cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]
   5.0s  operator    Drain cache-1                      cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]     1.6.45 → 1.7.0
   5.0s  agent       cache-1 reports its start          cache-0 [1.7.0 empty]              cache-1 [1.6.45 + 1.7.0 empty]
   5.0s  ReplicaSet  deletes the pod 1.6.45 of cache-1  cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
   5.0s  operator    all up to date                     cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
   6.0s  kubelet     removes the pod 1.6.45 of cache-1  cache-0 [1.7.0 empty]              cache-1 [1.7.0 empty]
