# Another memory is another pod. The status says first that the shard starts empty; then a second
# pod is made, and the first one goes when that serves. The same for the next shard.

shards 2 at 1.6.38
spec 1.6.38 128Mi
run
----
   0.0s  person      asks for 1.6.38 128Mi               cache-0 [1.6.38]                          cache-1 [1.6.38]
   0.0s  operator    holds cache-0: EmptyShardAnnounced  cache-0 [1.6.38]                          cache-1 [1.6.38]                          it will start empty
   0.0s  operator    Surge cache-0                       cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]                          64Mi → 128Mi
   0.0s  ReplicaSet  makes a pod for cache-0             cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]
   0.0s  operator    Await cache-0                       cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]                          64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0     cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  operator    Retire cache-0                      cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]                          64Mi → 128Mi
   2.0s  agent       cache-0 tells how it started        cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  ReplicaSet  ends the pod 1.6.38 of cache-0      cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]
   2.0s  operator    holds cache-1: ShardsNotSettled     cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]                          waiting for shard cache-0, which waits for the end of its former pod
   3.0s  kubelet     the pod 1.6.38 of cache-0 is gone   cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]
   3.0s  operator    Surge cache-1                       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   3.0s  ReplicaSet  makes a pod for cache-1             cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi starting]
   3.0s  operator    Await cache-1                       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   5.0s  kubelet     starts 1.6.38 128Mi for cache-1     cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]
   5.0s  operator    Retire cache-1                      cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi
   5.0s  agent       cache-1 tells how it started        cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]
   5.0s  ReplicaSet  ends the pod 1.6.38 of cache-1      cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
   5.0s  operator    is content                          cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
   6.0s  kubelet     the pod 1.6.38 of cache-1 is gone   cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
