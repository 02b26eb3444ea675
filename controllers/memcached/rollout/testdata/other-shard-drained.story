# A node with another shard is drained during the update. The next step waits until that shard
# serves from its new pod and the former pod is deleted. The new pod has the template's revision,
# and is updated in its turn.

shards 3 at 1.6.38
spec 1.6.45
run until Await cache-0
----
   0.0s  user       requests 1.6.45                   cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes               cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator   AnnounceStop cache-0              cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop  cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]
   4.3s  operator   Await cache-0                     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45

drain cache-1
run
----
   4.3s  node        is drained of cache-1              cache-0 [1.6.38→1.6.45 starting]  cache-1 [1.6.38 terminating]             cache-2 [1.6.38]
   4.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]  cache-1 [1.6.38 terminating]             cache-2 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]           cache-1 [1.6.38 terminating]             cache-2 [1.6.38]
   6.3s  agent       cache-0 reports its start          cache-0 [1.6.38→1.6.45]           cache-1 [1.6.38 terminating]             cache-2 [1.6.38]
   6.3s  operator    PromoteTemplate cache-0            cache-0 [1.6.45]                  cache-1 [1.6.38 terminating]             cache-2 [1.6.38]                   1.6.38 → 1.6.45
   7.3s  kubelet     removes the pod 1.6.38 of cache-1  cache-0 [1.6.45]                  cache-1 [1.6.38 no pod]                  cache-2 [1.6.38]
   7.3s  operator    blocks cache-2: ShardUnavailable   cache-0 [1.6.45]                  cache-1 [1.6.38 no pod]                  cache-2 [1.6.38]                   waiting for shard cache-1; at most one shard may be unavailable at a time
   7.3s  ReplicaSet  creates a pod for cache-1          cache-0 [1.6.45]                  cache-1 [1.6.38 starting]                cache-2 [1.6.38]
   7.3s  operator    blocks cache-1: ShardInTransition  cache-0 [1.6.45]                  cache-1 [1.6.38 starting]                cache-2 [1.6.38]                   waiting for shard cache-1, which is starting
   9.3s  kubelet     starts 1.6.38 for cache-1          cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]
   9.3s  operator    blocks cache-1: ShardInTransition  cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]                   waiting for shard cache-1, which hasn't reported whether it started warm or cold
   9.3s  agent       cache-1 reports its start          cache-0 [1.6.45]                  cache-1 [1.6.38 empty]                   cache-2 [1.6.38]
   9.3s  operator    AnnounceStop cache-1               cache-0 [1.6.45]                  cache-1 [1.6.38 empty announced]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
   9.6s  agent       cache-1 reads the announced stop   cache-0 [1.6.45]                  cache-1 [1.6.38 empty announced]         cache-2 [1.6.38]
   9.6s  operator    UpdateInPlace cache-1              cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 empty announced]  cache-2 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  kubelet     stops the container of cache-1     cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 starting]         cache-2 [1.6.38]
  10.6s  operator    Await cache-1                      cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45 starting]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45]                  cache-2 [1.6.38]
  12.6s  agent       cache-1 reports its start          cache-0 [1.6.45]                  cache-1 [1.6.38→1.6.45]                  cache-2 [1.6.38]
  12.6s  operator    PromoteTemplate cache-1            cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  operator    AnnounceStop cache-2               cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38 announced]         1.6.38 → 1.6.45
  12.9s  agent       cache-2 reads the announced stop   cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38 announced]
  12.9s  operator    UpdateInPlace cache-2              cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  13.9s  kubelet     stops the container of cache-2     cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 starting]
  13.9s  operator    Await cache-2                      cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  15.9s  kubelet     starts 1.6.45 for cache-2          cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45]
  15.9s  agent       cache-2 reports its start          cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.38→1.6.45]
  15.9s  operator    PromoteTemplate cache-2            cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.45]                   1.6.38 → 1.6.45
  15.9s  operator    all up to date                     cache-0 [1.6.45]                  cache-1 [1.6.45]                         cache-2 [1.6.45]
