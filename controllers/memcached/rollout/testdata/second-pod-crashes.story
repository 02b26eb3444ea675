# The second pod crashes: that is noted, the template goes back and the second pod with it. The
# shard has served with its items all the while.

shards 2 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x 128Mi
run
----
   0.0s  person      asks for 1.6.38 -x 128Mi                    cache-0 [1.6.38]                                   cache-1 [1.6.38]
   0.0s  operator    holds cache-0: EmptyShardAnnounced          cache-0 [1.6.38]                                   cache-1 [1.6.38]  it will start empty
   0.0s  operator    Surge cache-0                               cache-0 [1.6.38, next 1.6.38 -x 128Mi]             cache-1 [1.6.38]  no arguments → -x, 64Mi → 128Mi
   0.0s  ReplicaSet  makes a pod for cache-0                     cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]        cache-1 [1.6.38]
   0.0s  operator    Await cache-0                               cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]        cache-1 [1.6.38]  no arguments → -x, 64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 -x 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 -x 128Mi broken]          cache-1 [1.6.38]
   2.0s  operator    Note cache-0                                cache-0 [1.6.38 + 1.6.38 -x 128Mi broken, failed]  cache-1 [1.6.38]  memcached does not start with -x
   2.0s  operator    Confirm cache-0 back                        cache-0 [1.6.38 -x 128Mi broken + 1.6.38, failed]  cache-1 [1.6.38]  memcached does not start with -x
   2.0s  ReplicaSet  ends the pod 1.6.38 -x 128Mi of cache-0     cache-0 [1.6.38, failed]                           cache-1 [1.6.38]
   2.0s  operator    needs a person: UpdateFailed                cache-0 [1.6.38, failed]                           cache-1 [1.6.38]  memcached does not start with -x
   3.0s  kubelet     the pod 1.6.38 -x 128Mi of cache-0 is gone  cache-0 [1.6.38, failed]                           cache-1 [1.6.38]
