# A node is drained of another shard while the update is under way: the next step waits until that
# shard serves from its new pod and the former one is gone. It comes back as its template says, and
# has its turn.

shards 3 at 1.6.38
spec 1.6.45
run until Await cache-0
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]
   4.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45

drain cache-1
run
----
   4.3s  node        is drained of cache-1              cache-0 [1.6.38→1.6.45 starting]  cache-1 [1.6.38 going]                   cache-2 [1.6.38]
   4.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]  cache-1 [1.6.38 going]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]           cache-1 [1.6.38 going]                   cache-2 [1.6.38]
   6.3s  agent       cache-0 tells how it started       cache-0 [1.6.38→1.6.45]           cache-1 [1.6.38 going]                   cache-2 [1.6.38]
   6.3s  operator    Confirm cache-0                    cache-0 [1.6.45]                  cache-1 [1.6.38 going]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
   7.3s  kubelet     the pod 1.6.38 of cache-1 is gone  cache-0 [1.6.45]                  cache-1 [1.6.38 no pod]                  cache-2 [1.6.38]
   7.3s  operator    holds cache-2: ShardOut            cache-0 [1.6.45]                  cache-1 [1.6.38 no pod]                  cache-2 [1.6.38]                   shard cache-1 does not serve, and two shards must not be out at once
   7.3s  ReplicaSet  makes a pod for cache-1            cache-0 [1.6.45]                  cache-1 [1.6.38 starting]                cache-2 [1.6.38]
   7.3s  operator    holds cache-1: ShardsNotSettled    cache-0 [1.6.45]                  cache-1 [1.6.38 starting]                cache-2 [1.6.38]                   waiting for shard cache-1, which starts
   9.3s  kubelet     starts 1.6.38 for cache-1          cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]
   9.3s  operator    holds cache-1: ShardsNotSettled    cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]                   waiting for shard cache-1, which has not told yet how it started
   9.3s  agent       cache-1 tells how it started       cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]
   9.3s  operator    Announce cache-1                   cache-0 [1.6.45]                  cache-1 [1.6.38 empty announced]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
   9.6s  agent       cache-1 reads of its stop          cache-0 [1.6.45]                  cache-1 [1.6.38 empty announced]         cache-2 [1.6.38]
   9.6s  operator    Change cache-1                     cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 empty announced]  cache-2 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  kubelet     ends the container of cache-1      cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 starting]         cache-2 [1.6.38]
  10.6s  operator    Await cache-1                      cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 starting]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45]                  cache-2 [1.6.38]
  12.6s  agent       cache-1 tells how it started       cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45]                  cache-2 [1.6.38]
  12.6s  operator    Confirm cache-1                    cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  operator    Announce cache-2                   cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38 announced]         1.6.38 → 1.6.45
  12.9s  agent       cache-2 reads of its stop          cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38 announced]
  12.9s  operator    Change cache-2                     cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  13.9s  kubelet     ends the container of cache-2      cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 starting]
  13.9s  operator    Await cache-2                      cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  15.9s  kubelet     starts 1.6.45 for cache-2          cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45]
  15.9s  agent       cache-2 tells how it started       cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45]
  15.9s  operator    Confirm cache-2                    cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.45]                   1.6.38 → 1.6.45
  15.9s  operator    is content                         cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.45]
