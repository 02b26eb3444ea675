# The second pod is lost when the first one is already draining. Another one is created, and the
# first one stays until that serves.

shards 1 at 1.6.38
spec 1.6.38 128Mi
run until Drain cache-0
----
   0.0s  user        requests 1.6.38 128Mi                   cache-0 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced  cache-0 [1.6.38]                          the shard will be replaced
   0.0s  operator    Surge cache-0                           cache-0 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0               cache-0 [1.6.38 + 1.6.38 128Mi starting]
   0.0s  operator    Await cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0         cache-0 [1.6.38 + 1.6.38 128Mi empty]
   2.0s  operator    Drain cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi

lose the second pod of cache-0
run
----
   2.0s  node        is lost with the second pod of cache-0  cache-0 [1.6.38, next 1.6.38 128Mi]
   2.0s  operator    Surge cache-0                           cache-0 [1.6.38, next 1.6.38 128Mi]       64Mi → 128Mi
   2.0s  ReplicaSet  creates a pod for cache-0               cache-0 [1.6.38 + 1.6.38 128Mi starting]
   2.0s  operator    Await cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi starting]  64Mi → 128Mi
   4.0s  kubelet     starts 1.6.38 128Mi for cache-0         cache-0 [1.6.38 + 1.6.38 128Mi empty]
   4.0s  operator    Drain cache-0                           cache-0 [1.6.38 + 1.6.38 128Mi empty]     64Mi → 128Mi
   4.0s  agent       cache-0 reports its start               cache-0 [1.6.38 + 1.6.38 128Mi empty]
   4.0s  ReplicaSet  deletes the pod 1.6.38 of cache-0       cache-0 [1.6.38 128Mi empty]
   4.0s  operator    all up to date                          cache-0 [1.6.38 128Mi empty]
   5.0s  kubelet     removes the pod 1.6.38 of cache-0       cache-0 [1.6.38 128Mi empty]
