# Another memory needs another pod. The status announces that the shard starts empty. Then a second
# pod is created, and the first one is deleted when the second serves.

shards 2 at 1.6.38
spec 1.6.38 128Mi
run
----
   0.0s  user        requests 1.6.38 128Mi                   cache-0 [1.6.38]                          cache-1 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced  cache-0 [1.6.38]                          cache-1 [1.6.38]                          the shard will be replaced
   0.0s  operator    Surge cache-0                           cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]                          64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0               cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]
   0.0s  operator    Await cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]                          64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0         cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  operator    Drain cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]                          64Mi → 128Mi
   2.0s  agent       cache-0 reports its start               cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  ReplicaSet  deletes the pod 1.6.38 of cache-0       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]
   2.0s  operator    blocks cache-1: ShardInTransition       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]                          waiting for shard cache-0, which has a former pod that is still terminating
   3.0s  kubelet     removes the pod 1.6.38 of cache-0       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38]
   3.0s  operator    Surge cache-1                           cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   3.0s  ReplicaSet  creates a pod for cache-1               cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi starting]
   3.0s  operator    Await cache-1                           cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   5.0s  kubelet     starts 1.6.38 128Mi for cache-1         cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]
   5.0s  operator    Drain cache-1                           cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi
   5.0s  agent       cache-1 reports its start               cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 + 1.6.38 128Mi empty]
   5.0s  ReplicaSet  deletes the pod 1.6.38 of cache-1       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
   5.0s  operator    all up to date                          cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
   6.0s  kubelet     removes the pod 1.6.38 of cache-1       cache-0 [1.6.38 128Mi empty]              cache-1 [1.6.38 128Mi empty]
