# The node will never have room for the resources. The pod is replaced after an announcement.

shards 2 at 1.6.38
no node will ever have room for cpu=2
spec 1.6.38 cpu=2
run
----
   0.0s  user        requests 1.6.38 cpu=2                   cache-0 [1.6.38]                                   cache-1 [1.6.38]
   0.0s  operator    Resize cache-0                          cache-0 [1.6.38 resizing]                          cache-1 [1.6.38]                                   cpu=1 → cpu=2
   0.0s  operator    Resize cache-1                          cache-0 [1.6.38 resizing]                          cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced  cache-0 [1.6.38 resizing]                          cache-1 [1.6.38 resizing]                          the shard will be replaced
   0.0s  operator    Surge cache-0                           cache-0 [1.6.38 resizing, next 1.6.38 cpu=2]       cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node has room
   0.0s  ReplicaSet  creates a pod for cache-0               cache-0 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cache-1 [1.6.38 resizing]
   0.0s  operator    Await cache-0                           cache-0 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node has room
   2.0s  kubelet     starts 1.6.38 cpu=2 for cache-0         cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]
   2.0s  operator    Drain cache-0                           cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]                          cpu=1 → cpu=2; no node has room
   2.0s  agent       cache-0 reports its start               cache-0 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cache-1 [1.6.38 resizing]
   2.0s  ReplicaSet  deletes the pod 1.6.38 of cache-0       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]
   2.0s  operator    blocks cache-1: ShardInTransition       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]                          waiting for shard cache-0, which has a former pod that is still terminating
   3.0s  kubelet     removes the pod 1.6.38 of cache-0       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing]
   3.0s  operator    Surge cache-1                           cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing, next 1.6.38 cpu=2]       cpu=1 → cpu=2; no node has room
   3.0s  ReplicaSet  creates a pod for cache-1               cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 starting]
   3.0s  operator    Await cache-1                           cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 starting]  cpu=1 → cpu=2; no node has room
   5.0s  kubelet     starts 1.6.38 cpu=2 for cache-1         cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]
   5.0s  operator    Drain cache-1                           cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]     cpu=1 → cpu=2; no node has room
   5.0s  agent       cache-1 reports its start               cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 resizing + 1.6.38 cpu=2 empty]
   5.0s  ReplicaSet  deletes the pod 1.6.38 of cache-1       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
   5.0s  operator    all up to date                          cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
   6.0s  kubelet     removes the pod 1.6.38 of cache-1       cache-0 [1.6.38 cpu=2 empty]                       cache-1 [1.6.38 cpu=2 empty]
