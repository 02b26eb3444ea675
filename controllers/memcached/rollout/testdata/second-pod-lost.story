# The second pod is lost when the first was already chosen to go: another is made, and the first
# stays until that one serves. (It was ended with the first for ever once.)

shards 1 at 1.6.38
spec 1.6.38 128Mi
run until Retire cache-0
----
   0.0s  person      asks for 1.6.38 128Mi               cache-0 [1.6.38]
   0.0s  operator    holds cache-0: EmptyShardAnnounced  cache-0 [1.6.38]                          it will start empty
   0.0s  operator    Surge cache-0                       cache-0 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   0.0s  ReplicaSet  makes a pod for cache-0             cache-0 [1.6.38 + 1.6.38 128Mi starting]
   0.0s  operator    Await cache-0                       cache-0 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0     cache-0 [1.6.38 + 1.6.38 128Mi empty]
   2.0s  operator    Retire cache-0                      cache-0 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi

lose the second pod of cache-0
run
----
   2.0s  node        is lost with the second pod of cache-0  cache-0 [1.6.38, next 1.6.38 128Mi]
   2.0s  operator    Surge cache-0                           cache-0 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   2.0s  ReplicaSet  makes a pod for cache-0                 cache-0 [1.6.38 + 1.6.38 128Mi starting]
   2.0s  operator    Await cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   4.0s  kubelet     starts 1.6.38 128Mi for cache-0         cache-0 [1.6.38 + 1.6.38 128Mi empty]
   4.0s  operator    Retire cache-0                          cache-0 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi
   4.0s  agent       cache-0 tells how it started            cache-0 [1.6.38 + 1.6.38 128Mi empty]
   4.0s  ReplicaSet  ends the pod 1.6.38 of cache-0          cache-0 [1.6.38 128Mi empty]
   4.0s  operator    is content                              cache-0 [1.6.38 128Mi empty]
   5.0s  kubelet     the pod 1.6.38 of cache-0 is gone       cache-0 [1.6.38 128Mi empty]
