# No node will ever have room where the pod is: then it is replaced, and that is told beforehand.

shards 2 at 1.6.38
no node will ever have room for cpu=2
spec 1.6.38 cpu=2
run
----
   0.0s  person      asks for 1.6.38 cpu=2               cache-0 [1.6.38]                                   cache-1 [1.6.38]
   0.0s  operator    Resize cache-0                      cache-0 [1.6.38 resizing]                          cache-1 [1.6.38]                                   cpu=1 → cpu=2
   0.0s  operator    Resize cache-1                      cache-0 [1.6.38 resizing]                          cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2
   0.0s  operator    holds cache-0: EmptyShardAnnounced  cache-0 [1.6.38 resizing]                          cache-1 [1.6.38 resizing]                          it will start empty
   0.0s  operator    Surge cache-0                       cache-0 [1.6.38 resizing, next 1.6.38 cpu=2]       cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node will have room
   0.0s  ReplicaSet  makes a pod for cache-0             cache-0 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cache-1 [1.6.38 resizing]
   0.0s  operator    Await cache-0                       cache-0 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node will have room
   2.0s  kubelet     starts 1.6.38 cpu=2 for cache-0     cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]
   2.0s  operator    Retire cache-0                      cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node will have room
   2.0s  agent       cache-0 tells how it started        cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]
   2.0s  ReplicaSet  ends the pod 1.6.38 of cache-0      cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]
   2.0s  operator    holds cache-1: ShardsNotSettled     cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]                          waiting for shard cache-0, which waits for the end of its former pod
   3.0s  kubelet     the pod 1.6.38 of cache-0 is gone   cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]
   3.0s  operator    Surge cache-1                       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing, next 1.6.38 cpu=2]       cpu=1 → cpu=2; no node will have room
   3.0s  ReplicaSet  makes a pod for cache-1             cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 starting]
   3.0s  operator    Await cache-1                       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cpu=1 → cpu=2; no node will have room
   5.0s  kubelet     starts 1.6.38 cpu=2 for cache-1     cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]
   5.0s  operator    Retire cache-1                      cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cpu=1 → cpu=2; no node will have room
   5.0s  agent       cache-1 tells how it started        cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]
   5.0s  ReplicaSet  ends the pod 1.6.38 of cache-1      cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
   5.0s  operator    is content                          cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
   6.0s  kubelet     the pod 1.6.38 of cache-1 is gone   cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
