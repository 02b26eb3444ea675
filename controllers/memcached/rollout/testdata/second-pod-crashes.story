# The second pod crashes. The failure is recorded, the template rolled back and the second pod
# deleted. The first one serves its items throughout.

shards 2 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x 128Mi
run
----
   0.0s  user        requests 1.6.38 -x 128Mi                    cache-0 [1.6.38]                                   cache-1 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced      cache-0 [1.6.38]                                   cache-1 [1.6.38]  the shard will be replaced
   0.0s  operator    Surge cache-0                               cache-0 [1.6.38, next 1.6.38 -x 128Mi]             cache-1 [1.6.38]  no arguments → -x, 64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0                   cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]        cache-1 [1.6.38]
   0.0s  operator    Await cache-0                               cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]        cache-1 [1.6.38]  no arguments → -x, 64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 -x 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 -x 128Mi broken]          cache-1 [1.6.38]
   2.0s  operator    RecordFailure cache-0                       cache-0 [1.6.38 + 1.6.38 -x 128Mi broken, failed]  cache-1 [1.6.38]  memcached doesn't start with -x
   2.0s  operator    PromoteTemplate cache-0, rolling back       cache-0 [1.6.38 -x 128Mi broken + 1.6.38, failed]  cache-1 [1.6.38]  memcached doesn't start with -x
   2.0s  ReplicaSet  deletes the pod 1.6.38 -x 128Mi of cache-0  cache-0 [1.6.38, failed]                           cache-1 [1.6.38]
   2.0s  operator    requires intervention: UpdateFailed         cache-0 [1.6.38, failed]                           cache-1 [1.6.38]  memcached doesn't start with -x
   3.0s  kubelet     removes the pod 1.6.38 -x 128Mi of cache-0  cache-0 [1.6.38, failed]                           cache-1 [1.6.38]
