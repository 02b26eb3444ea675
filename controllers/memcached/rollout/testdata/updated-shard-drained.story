# The node of the shard that is being updated is drained. Its new pod has the template's revision,
# which is still the old version, and is updated again.

shards 2 at 1.6.38
spec 1.6.45
run until cache-0 [1.6.38→1.6.45 starting]
----
   0.0s  user       requests 1.6.45                   cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes               cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator   AnnounceStop cache-0              cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop  cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]

drain cache-0
run
----
   4.3s  node        is drained of cache-0              cache-0 [1.6.38→1.6.45 starting terminating]  cache-1 [1.6.38]
   4.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting terminating]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
   5.3s  kubelet     removes the pod 1.6.45 of cache-0  cache-0 [1.6.38 no pod]                       cache-1 [1.6.38]
   5.3s  operator    blocks cache-1: ShardUnavailable   cache-0 [1.6.38 no pod]                       cache-1 [1.6.38]                   waiting for shard cache-0; at most one shard may be unavailable at a time
   5.3s  ReplicaSet  creates a pod for cache-0          cache-0 [1.6.38 starting]                     cache-1 [1.6.38]
   5.3s  operator    blocks cache-0: ShardInTransition  cache-0 [1.6.38 starting]                     cache-1 [1.6.38]                   waiting for shard cache-0, which is starting
   7.3s  kubelet     starts 1.6.38 for cache-0          cache-0 [1.6.38 empty]                        cache-1 [1.6.38]
   7.3s  operator    blocks cache-0: ShardInTransition  cache-0 [1.6.38 empty]                        cache-1 [1.6.38]                   waiting for shard cache-0, which hasn't reported whether it started warm or cold
   7.3s  agent       cache-0 reports its start          cache-0 [1.6.38 empty]                        cache-1 [1.6.38]
   7.3s  operator    AnnounceStop cache-0               cache-0 [1.6.38 empty announced]              cache-1 [1.6.38]                   1.6.38 → 1.6.45
   7.6s  agent       cache-0 reads the announced stop   cache-0 [1.6.38 empty announced]              cache-1 [1.6.38]
   7.6s  operator    UpdateInPlace cache-0              cache-0 [1.6.38→1.6.45 empty announced]       cache-1 [1.6.38]                   1.6.38 → 1.6.45
   8.6s  kubelet     stops the container of cache-0     cache-0 [1.6.38→1.6.45 starting]              cache-1 [1.6.38]
   8.6s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]              cache-1 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]                       cache-1 [1.6.38]
  10.6s  agent       cache-0 reports its start          cache-0 [1.6.38→1.6.45]                       cache-1 [1.6.38]
  10.6s  operator    PromoteTemplate cache-0            cache-0 [1.6.45]                              cache-1 [1.6.38]                   1.6.38 → 1.6.45
  10.6s  operator    AnnounceStop cache-1               cache-0 [1.6.45]                              cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
  10.9s  agent       cache-1 reads the announced stop   cache-0 [1.6.45]                              cache-1 [1.6.38 announced]
  10.9s  operator    UpdateInPlace cache-1              cache-0 [1.6.45]                              cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  11.9s  kubelet     stops the container of cache-1     cache-0 [1.6.45]                              cache-1 [1.6.38→1.6.45 starting]
  11.9s  operator    Await cache-1                      cache-0 [1.6.45]                              cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  13.9s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                              cache-1 [1.6.38→1.6.45]
  13.9s  agent       cache-1 reports its start          cache-0 [1.6.45]                              cache-1 [1.6.38→1.6.45]
  13.9s  operator    PromoteTemplate cache-1            cache-0 [1.6.45]                              cache-1 [1.6.45]                   1.6.38 → 1.6.45
  13.9s  operator    all up to date                     cache-0 [1.6.45]                              cache-1 [1.6.45]
