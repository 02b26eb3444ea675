# The person asks for something else while the second pod comes up: the ReplicaSet ends it, the
# template follows the pod that stayed, and only then the new change begins, in place.

shards 2 at 1.6.38
spec 1.6.38 128Mi
run until makes a pod
----
   0.0s  person      asks for 1.6.38 128Mi               cache-0 [1.6.38]                          cache-1 [1.6.38]
   0.0s  operator    holds cache-0: EmptyShardAnnounced  cache-0 [1.6.38]                          cache-1 [1.6.38]  it will start empty
   0.0s  operator    Surge cache-0                       cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]  64Mi → 128Mi
   0.0s  ReplicaSet  makes a pod for cache-0             cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]

spec 1.6.45
run until Change cache-0
----
   0.0s  person      asks for 1.6.45                          cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]
   0.0s  operator    Await cache-0                            cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  agent       cache-0 tells how it started             cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  ReplicaSet  ends the pod 1.6.38 128Mi of cache-0     cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]
   2.0s  operator    Confirm cache-0                          cache-0 [1.6.38]                          cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.0s  kubelet     the pod 1.6.38 128Mi of cache-0 is gone  cache-0 [1.6.38]                          cache-1 [1.6.38]
   3.0s  operator    Prove cache-0                            cache-0 [1.6.38]                          cache-1 [1.6.38]  proving image 1.6.45
   6.0s  proof       proves image 1.6.45                      cache-0 [1.6.38]                          cache-1 [1.6.38]
   6.0s  operator    Announce cache-0                         cache-0 [1.6.38 announced]                cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  agent       cache-0 reads of its stop                cache-0 [1.6.38 announced]                cache-1 [1.6.38]
   6.3s  operator    Change cache-0                           cache-0 [1.6.38→1.6.45 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
