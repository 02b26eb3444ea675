# A shard that is unavailable blocks all others, for whatever reason.

shards 3 at 1.6.38
image 1.6.38 crashes on cache-2
crash cache-2
run
----
   0.0s  kernel    kills memcached of cache-2       cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]
   0.0s  operator  all up to date                   cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]
  10.0s  kubelet   starts 1.6.38 for cache-2 again  cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38 broken]

# Only its own repair is possible: its pod is recreated with the new version once the image has
# passed its checks. Then the others are updated.
spec 1.6.45
run
----
  10.0s  user        requests 1.6.45                    cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]
  10.0s  operator    Preflight cache-2                  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]               checking image 1.6.45
  13.0s  preflight   image 1.6.45 passes                cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken]
  13.0s  operator    Recreate cache-2                   cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38 broken, next 1.6.45]  1.6.38 → 1.6.45
  14.0s  kubelet     removes the pod 1.6.38 of cache-2  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 no pod]
  14.0s  operator    blocks cache-0: ShardUnavailable   cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 no pod]               waiting for shard cache-2; at most one shard may be unavailable at a time
  14.0s  ReplicaSet  creates a pod for cache-2          cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 starting]
  14.0s  operator    blocks cache-0: ShardInTransition  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 starting]             waiting for shard cache-2, which is starting
  16.0s  kubelet     starts 1.6.45 for cache-2          cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.0s  operator    blocks cache-0: ShardInTransition  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                waiting for shard cache-2, which hasn't reported whether it started warm or cold
  16.0s  agent       cache-2 reports its start          cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.0s  operator    AnnounceStop cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  16.3s  agent       cache-0 reads the announced stop   cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  16.3s  operator    UpdateInPlace cache-0              cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  17.3s  kubelet     stops the container of cache-0     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  17.3s  operator    Await cache-0                      cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.3s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  19.3s  agent       cache-0 reports its start          cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.45 empty]
  19.3s  operator    PromoteTemplate cache-0            cache-0 [1.6.45]                   cache-1 [1.6.38]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.3s  operator    AnnounceStop cache-1               cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  19.6s  agent       cache-1 reads the announced stop   cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.45 empty]
  19.6s  operator    UpdateInPlace cache-1              cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  20.6s  kubelet     stops the container of cache-1     cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.45 empty]
  20.6s  operator    Await cache-1                      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  22.6s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.45 empty]
  22.6s  agent       cache-1 reports its start          cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.45 empty]
  22.6s  operator    PromoteTemplate cache-1            cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45 empty]                1.6.38 → 1.6.45
  22.6s  operator    all up to date                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45 empty]
