# The second pod has failed, and then the first is drained before it was taken back: the pod that is
# left is the one that crashes. It is ended, and the shard comes back as it was, though empty.

shards 1 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x 128Mi
run until Note cache-0
drain cache-0
run
----
   0.0s  person      asks for 1.6.38 -x 128Mi                    cache-0 [1.6.38]
   0.0s  operator    holds cache-0: EmptyShardAnnounced          cache-0 [1.6.38]                                             it will start empty
   0.0s  operator    Surge cache-0                               cache-0 [1.6.38, next 1.6.38 -x 128Mi]                       no arguments → -x, 64Mi → 128Mi
   0.0s  ReplicaSet  makes a pod for cache-0                     cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]
   0.0s  operator    Await cache-0                               cache-0 [1.6.38 + 1.6.38 -x 128Mi starting]                  no arguments → -x, 64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 -x 128Mi for cache-0          cache-0 [1.6.38 + 1.6.38 -x 128Mi broken]
   2.0s  operator    Note cache-0                                cache-0 [1.6.38 + 1.6.38 -x 128Mi broken, failed]            memcached does not start with -x
   2.0s  node        is drained of cache-0                       cache-0 [1.6.38 going + 1.6.38 -x 128Mi broken, failed]
   2.0s  operator    Confirm cache-0 back                        cache-0 [1.6.38 -x 128Mi broken, next 1.6.38, failed]        memcached does not start with -x
   3.0s  kubelet     the pod 1.6.38 of cache-0 is gone           cache-0 [1.6.38 -x 128Mi broken, next 1.6.38, failed]
   3.0s  operator    Remake cache-0 back                         cache-0 [1.6.38 -x 128Mi broken going, next 1.6.38, failed]  memcached does not start with -x
   4.0s  kubelet     the pod 1.6.38 -x 128Mi of cache-0 is gone  cache-0 [1.6.38 no pod]
   4.0s  operator    holds cache-0: ShardOut                     cache-0 [1.6.38 no pod]                                      shard cache-0 has no pod yet
   4.0s  ReplicaSet  makes a pod for cache-0                     cache-0 [1.6.38 starting, failed]
   4.0s  operator    needs a person: UpdateFailed                cache-0 [1.6.38 starting, failed]                            memcached does not start with -x
   6.0s  kubelet     starts 1.6.38 for cache-0                   cache-0 [1.6.38 empty, failed]
   6.0s  agent       cache-0 tells how it started                cache-0 [1.6.38 empty, failed]
