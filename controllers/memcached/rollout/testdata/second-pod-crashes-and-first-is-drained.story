# The second pod fails, and the node of the first is drained before the rollback: only the crashing
# pod is left. It is deleted, and the shard comes back empty with the old revision.

shards 1 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x 128Mi
run until RecordFailure cache-0
drain cache-0
run
----
   0.0s  user        requests 1.6.38 -x 128Mi                    cache-0 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced      cache-0 [1.6.38]                                                   the shard will be replaced
   0.0s  operator    Surge cache-0                               cache-0 [1.6.38, next 1.6.38 -x 128Mi]                             no arguments → -x, 64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0                   cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]
   0.0s  operator    Await cache-0                               cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]                        no arguments → -x, 64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 -x 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 -x 128Mi broken]
   2.0s  operator    RecordFailure cache-0                       cache-0 [1.6.38 + 1.6.38 -x 128Mi broken, failed]                  memcached doesn't start with -x
   2.0s  node        is drained of cache-0                       cache-0 [1.6.38 terminating + 1.6.38 -x 128Mi broken, failed]
   2.0s  operator    PromoteTemplate cache-0, rolling back       cache-0 [1.6.38 -x 128Mi broken, next 1.6.38, failed]              memcached doesn't start with -x
   3.0s  kubelet     removes the pod 1.6.38 of cache-0           cache-0 [1.6.38 -x 128Mi broken, next 1.6.38, failed]
   3.0s  operator    Recreate cache-0, rolling back              cache-0 [1.6.38 -x 128Mi broken terminating, next 1.6.38, failed]  memcached doesn't start with -x
   4.0s  kubelet     removes the pod 1.6.38 -x 128Mi of cache-0  cache-0 [1.6.38 no pod]
   4.0s  operator    blocks cache-0: ShardUnavailable            cache-0 [1.6.38 no pod]                                            shard cache-0 has no pod yet
   4.0s  ReplicaSet  creates a pod for cache-0                   cache-0 [1.6.38 starting, failed]
   4.0s  operator    requires intervention: UpdateFailed         cache-0 [1.6.38 starting, failed]                                  memcached doesn't start with -x
   6.0s  kubelet     starts 1.6.38 for cache-0                   cache-0 [1.6.38 empty, failed]
   6.0s  agent       cache-0 reports its start                   cache-0 [1.6.38 empty, failed]
