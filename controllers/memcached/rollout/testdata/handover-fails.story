# An update by a handover that fails on a shard stops there. The shard has its new pod, without its items.

shards 2 at 1.6.38
pods hand over their items
updates are by handover
spec 1.6.45
run until receiving
crash cache-0
drain cache-0
run
----
   0.0s  user        requests 1.6.45                          cache-0 [1.6.38]                            cache-1 [1.6.38]
   0.0s  operator    blocks cache-0: EmptyStartNotAnnounced   cache-0 [1.6.38]                            cache-1 [1.6.38]  the shard will be replaced
   0.0s  operator    Surge cache-0                            cache-0 [1.6.38, next 1.6.45]               cache-1 [1.6.38]  1.6.38 → 1.6.45, which moves it to a new pod with its items
   0.0s  ReplicaSet  creates a pod for cache-0                cache-0 [1.6.38 + 1.6.45 starting]          cache-1 [1.6.38]
   0.0s  operator    Await cache-0                            cache-0 [1.6.38 + 1.6.45 starting]          cache-1 [1.6.38]  1.6.38 → 1.6.45, which moves it to a new pod with its items
   2.0s  kubelet     starts 1.6.45 for cache-0                cache-0 [1.6.38 + 1.6.45 receiving]         cache-1 [1.6.38]
   2.0s  kernel      kills memcached of cache-0               cache-0 [1.6.38 broken + 1.6.45 receiving]  cache-1 [1.6.38]
   2.0s  node        is drained of cache-0                    cache-0 [1.6.45 receiving]                  cache-1 [1.6.38]
   2.0s  operator    Await cache-0                            cache-0 [1.6.45 receiving]                  cache-1 [1.6.38]  the new pod takes over
   3.0s  kubelet     removes the pod 1.6.38 of cache-0        cache-0 [1.6.45 receiving]                  cache-1 [1.6.38]
   4.0s  agent       cache-0 finds no pod that has its items  cache-0 [1.6.45 empty]                      cache-1 [1.6.38]
   4.0s  agent       cache-0 reports its start                cache-0 [1.6.45 empty]                      cache-1 [1.6.38]
   4.0s  operator    RecordFailure cache-0                    cache-0 [1.6.45 empty, failed]              cache-1 [1.6.38]  it started empty
   4.0s  operator    requires intervention: UpdateFailed      cache-0 [1.6.45 empty, failed]              cache-1 [1.6.38]  it started empty

# A retry updates the other shard.

retry
run
----
   4.0s  user        retries                                 cache-0 [1.6.45 empty]  cache-1 [1.6.38]
   4.0s  operator    blocks cache-1: EmptyStartNotAnnounced  cache-0 [1.6.45 empty]  cache-1 [1.6.38]                     the shard will be replaced
   4.0s  operator    Surge cache-1                           cache-0 [1.6.45 empty]  cache-1 [1.6.38, next 1.6.45]        1.6.38 → 1.6.45, which moves it to a new pod with its items
   4.0s  ReplicaSet  creates a pod for cache-1               cache-0 [1.6.45 empty]  cache-1 [1.6.38 + 1.6.45 starting]
   4.0s  operator    Await cache-1                           cache-0 [1.6.45 empty]  cache-1 [1.6.38 + 1.6.45 starting]   1.6.38 → 1.6.45, which moves it to a new pod with its items
   6.0s  kubelet     starts 1.6.45 for cache-1               cache-0 [1.6.45 empty]  cache-1 [1.6.38 + 1.6.45 receiving]
   6.0s  operator    HandOver cache-1                        cache-0 [1.6.45 empty]  cache-1 [1.6.38 + 1.6.45 receiving]  1.6.38 → 1.6.45, which moves it to a new pod with its items
  16.0s  agent       cache-1 hands over its items to 1.6.45  cache-0 [1.6.45 empty]  cache-1 [1.6.38 starting + 1.6.45]
  16.0s  operator    Drain cache-1                           cache-0 [1.6.45 empty]  cache-1 [1.6.45]                     1.6.38 → 1.6.45, which moves it to a new pod with its items
  17.0s  kubelet     removes the pod 1.6.38 of cache-1       cache-0 [1.6.45 empty]  cache-1 [1.6.45]
  17.0s  operator    all up to date                          cache-0 [1.6.45 empty]  cache-1 [1.6.45]
