# A replacement that receives the items: the second pod runs and doesn't serve, so it is requested to receive them. The first
# one serves until the second does, and is deleted then.

shards 2 at 1.6.38
pods hand over their items
spec 1.6.38 128Mi
run
----
   0.0s  user        requests 1.6.38 128Mi                         cache-0 [1.6.38]                           cache-1 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced        cache-0 [1.6.38]                           cache-1 [1.6.38]                           the shard will be replaced
   0.0s  operator    Surge cache-0                                 cache-0 [1.6.38, next 1.6.38 128Mi]        cache-1 [1.6.38]                           64Mi → 128Mi
   0.0s  ReplicaSet  creates a pod for cache-0                     cache-0 [1.6.38 + 1.6.38 128Mi starting]   cache-1 [1.6.38]
   0.0s  operator    Await cache-0                                 cache-0 [1.6.38 + 1.6.38 128Mi starting]   cache-1 [1.6.38]                           64Mi → 128Mi
   2.0s  kubelet     starts 1.6.38 128Mi for cache-0               cache-0 [1.6.38 + 1.6.38 128Mi receiving]  cache-1 [1.6.38]
   2.0s  operator    HandOver cache-0                              cache-0 [1.6.38 + 1.6.38 128Mi receiving]  cache-1 [1.6.38]                           64Mi → 128Mi
  12.0s  agent       cache-0 hands over its items to 1.6.38 128Mi  cache-0 [1.6.38 starting + 1.6.38 128Mi]   cache-1 [1.6.38]
  12.0s  operator    Drain cache-0                                 cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38]                           64Mi → 128Mi
  13.0s  kubelet     removes the pod 1.6.38 of cache-0             cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38]
  13.0s  operator    blocks cache-1: EmptyStartNotAnnounced        cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38]                           the shard will be replaced
  13.0s  operator    Surge cache-1                                 cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38, next 1.6.38 128Mi]        64Mi → 128Mi
  13.0s  ReplicaSet  creates a pod for cache-1                     cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 + 1.6.38 128Mi starting]
  13.0s  operator    Await cache-1                                 cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 + 1.6.38 128Mi starting]   64Mi → 128Mi
  15.0s  kubelet     starts 1.6.38 128Mi for cache-1               cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 + 1.6.38 128Mi receiving]
  15.0s  operator    HandOver cache-1                              cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 + 1.6.38 128Mi receiving]  64Mi → 128Mi
  25.0s  agent       cache-1 hands over its items to 1.6.38 128Mi  cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 starting + 1.6.38 128Mi]
  25.0s  operator    Drain cache-1                                 cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 128Mi]                     64Mi → 128Mi
  26.0s  kubelet     removes the pod 1.6.38 of cache-1             cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 128Mi]
  26.0s  operator    all up to date                                cache-0 [1.6.38 128Mi]                     cache-1 [1.6.38 128Mi]

# A second pod that doesn't start costs no items.

spec 1.6.38 256Mi -t8
memcached does not start with -t8
run
----
  26.0s  user        requests 1.6.38 256Mi -t8                    cache-0 [1.6.38 128Mi]                                    cache-1 [1.6.38 128Mi]
  26.0s  operator    blocks cache-0: EmptyStartNotAnnounced       cache-0 [1.6.38 128Mi]                                    cache-1 [1.6.38 128Mi]  the shard will be replaced
  26.0s  operator    Surge cache-0                                cache-0 [1.6.38 128Mi, next 1.6.38 -t8 256Mi]             cache-1 [1.6.38 128Mi]  no arguments → -t8, 128Mi → 256Mi
  26.0s  ReplicaSet  creates a pod for cache-0                    cache-0 [1.6.38 128Mi + 1.6.38 -t8 256Mi starting]        cache-1 [1.6.38 128Mi]
  26.0s  operator    Await cache-0                                cache-0 [1.6.38 128Mi + 1.6.38 -t8 256Mi starting]        cache-1 [1.6.38 128Mi]  no arguments → -t8, 128Mi → 256Mi
  28.0s  kubelet     starts 1.6.38 -t8 256Mi for cache-0          cache-0 [1.6.38 128Mi + 1.6.38 -t8 256Mi broken]          cache-1 [1.6.38 128Mi]
  28.0s  operator    RecordFailure cache-0                        cache-0 [1.6.38 128Mi + 1.6.38 -t8 256Mi broken, failed]  cache-1 [1.6.38 128Mi]  memcached doesn't start with -t8
  28.0s  operator    PromoteTemplate cache-0, rolling back        cache-0 [1.6.38 -t8 256Mi broken + 1.6.38 128Mi, failed]  cache-1 [1.6.38 128Mi]  memcached doesn't start with -t8
  28.0s  ReplicaSet  deletes the pod 1.6.38 -t8 256Mi of cache-0  cache-0 [1.6.38 128Mi, failed]                            cache-1 [1.6.38 128Mi]
  28.0s  operator    requires intervention: UpdateFailed          cache-0 [1.6.38 128Mi, failed]                            cache-1 [1.6.38 128Mi]  memcached doesn't start with -t8
  29.0s  kubelet     removes the pod 1.6.38 -t8 256Mi of cache-0  cache-0 [1.6.38 128Mi, failed]                            cache-1 [1.6.38 128Mi]
