# The spec changes while the second pod starts. The ReplicaSet deletes that pod, the template is set
# to the revision of the first, and the new update starts in place.

shards 2 at 1.6.38
spec 1.6.38 128Mi
run until creates a pod
----
   0.0s  user        requests 1.6.38 128Mi                   cache-0 [1.6.38]                          cache-1 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced  cache-0 [1.6.38]                          cache-1 [1.6.38]  the shard will be replaced
   0.0s  operator    Surge cache-0                           cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]  64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0               cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]

spec 1.6.45
run until UpdateInPlace cache-0
----
   0.0s  user        requests 1.6.45                          cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]
   0.0s  operator    Await cache-0                            cache-0 [1.6.38 + 1.6.38 128Mi starting]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  agent       cache-0 reports its start                cache-0 [1.6.38 + 1.6.38 128Mi empty]     cache-1 [1.6.38]
   2.0s  ReplicaSet  deletes the pod 1.6.38 128Mi of cache-0  cache-0 [1.6.38, next 1.6.38 128Mi]       cache-1 [1.6.38]
   2.0s  operator    PromoteTemplate cache-0                  cache-0 [1.6.38]                          cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.0s  kubelet     removes the pod 1.6.38 128Mi of cache-0  cache-0 [1.6.38]                          cache-1 [1.6.38]
   3.0s  operator    Preflight cache-0                        cache-0 [1.6.38]                          cache-1 [1.6.38]  checking image 1.6.45
   6.0s  preflight   image 1.6.45 passes                      cache-0 [1.6.38]                          cache-1 [1.6.38]
   6.0s  operator    AnnounceStop cache-0                     cache-0 [1.6.38 announced]                cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  agent       cache-0 reads the announced stop         cache-0 [1.6.38 announced]                cache-1 [1.6.38]
   6.3s  operator    UpdateInPlace cache-0                    cache-0 [1.6.38→1.6.45 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
