# The shard that is being changed is itself drained: its new pod is made of the template, which is
# still the old version, and then it is changed again.

shards 2 at 1.6.38
spec 1.6.45
run until cache-0 [1.6.38→1.6.45 starting]
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]

drain cache-0
run
----
   4.3s  node        is drained of cache-0              cache-0 [1.6.38→1.6.45 starting going]   cache-1 [1.6.38]
   4.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting going]   cache-1 [1.6.38]                   1.6.38 → 1.6.45
   5.3s  kubelet     the pod 1.6.45 of cache-0 is gone  cache-0 [1.6.38 no pod]                  cache-1 [1.6.38]
   5.3s  operator    holds cache-1: ShardOut            cache-0 [1.6.38 no pod]                  cache-1 [1.6.38]                   shard cache-0 does not serve, and two shards must not be out at once
   5.3s  ReplicaSet  makes a pod for cache-0            cache-0 [1.6.38 starting]                cache-1 [1.6.38]
   5.3s  operator    holds cache-0: ShardsNotSettled    cache-0 [1.6.38 starting]                cache-1 [1.6.38]                   waiting for shard cache-0, which starts
   7.3s  kubelet     starts 1.6.38 for cache-0          cache-0 [1.6.38 empty]                   cache-1 [1.6.38]
   7.3s  operator    holds cache-0: ShardsNotSettled    cache-0 [1.6.38 empty]                   cache-1 [1.6.38]                   waiting for shard cache-0, which has not told yet how it started
   7.3s  agent       cache-0 tells how it started       cache-0 [1.6.38 empty]                   cache-1 [1.6.38]
   7.3s  operator    Announce cache-0                   cache-0 [1.6.38 empty announced]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
   7.6s  agent       cache-0 reads of its stop          cache-0 [1.6.38 empty announced]         cache-1 [1.6.38]
   7.6s  operator    Change cache-0                     cache-0 [1.6.38→1.6.45 empty announced]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
   8.6s  kubelet     ends the container of cache-0      cache-0 [1.6.38→1.6.45 starting]         cache-1 [1.6.38]
   8.6s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]                  cache-1 [1.6.38]
  10.6s  agent       cache-0 tells how it started       cache-0 [1.6.38→1.6.45]                  cache-1 [1.6.38]
  10.6s  operator    Confirm cache-0                    cache-0 [1.6.45]                         cache-1 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  operator    Announce cache-1                   cache-0 [1.6.45]                         cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
  10.9s  agent       cache-1 reads of its stop          cache-0 [1.6.45]                         cache-1 [1.6.38 announced]
  10.9s  operator    Change cache-1                     cache-0 [1.6.45]                         cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  11.9s  kubelet     ends the container of cache-1      cache-0 [1.6.45]                         cache-1 [1.6.38→1.6.45 starting]
  11.9s  operator    Await cache-1                      cache-0 [1.6.45]                         cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  13.9s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                         cache-1 [1.6.38→1.6.45]
  13.9s  agent       cache-1 tells how it started       cache-0 [1.6.45]                         cache-1 [1.6.38→1.6.45]
  13.9s  operator    Confirm cache-1                    cache-0 [1.6.45]                         cache-1 [1.6.45]                   1.6.38 → 1.6.45
  13.9s  operator    is content                         cache-0 [1.6.45]                         cache-1 [1.6.45]
