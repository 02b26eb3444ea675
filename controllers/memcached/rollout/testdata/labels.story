# Labels disturb no shard: no gate blocks them, not even another shard that moves.

shards 3 at 1.6.38
min period 1h
the maintenance window opens in 2h
drain cache-2
spec 1.6.38 label=x
run
----
   0.0s  node        is drained of cache-2              cache-0 [1.6.38]                 cache-1 [1.6.38]                 cache-2 [1.6.38 terminating]
   0.0s  user        requests 1.6.38 label=x            cache-0 [1.6.38]                 cache-1 [1.6.38]                 cache-2 [1.6.38 terminating]
   0.0s  operator    UpdateInPlace cache-0              cache-0 [1.6.38→1.6.38 label=x]  cache-1 [1.6.38]                 cache-2 [1.6.38 terminating]           no label → label=x
   1.0s  kubelet     removes the pod 1.6.38 of cache-2  cache-0 [1.6.38→1.6.38 label=x]  cache-1 [1.6.38]                 cache-2 [1.6.38 no pod]
   1.0s  operator    PromoteTemplate cache-0            cache-0 [1.6.38 label=x]         cache-1 [1.6.38]                 cache-2 [1.6.38 no pod]                no label → label=x
   1.0s  ReplicaSet  creates a pod for cache-2          cache-0 [1.6.38 label=x]         cache-1 [1.6.38]                 cache-2 [1.6.38 starting]
   1.0s  operator    UpdateInPlace cache-1              cache-0 [1.6.38 label=x]         cache-1 [1.6.38→1.6.38 label=x]  cache-2 [1.6.38 starting]              no label → label=x
   3.0s  kubelet     starts 1.6.38 for cache-2          cache-0 [1.6.38 label=x]         cache-1 [1.6.38→1.6.38 label=x]  cache-2 [1.6.38 empty]
   3.0s  operator    PromoteTemplate cache-1            cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 empty]                 no label → label=x
   3.0s  agent       cache-2 reports its start          cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 empty]
   3.0s  operator    UpdateInPlace cache-2              cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38→1.6.38 label=x empty]  no label → label=x
   3.0s  operator    PromoteTemplate cache-2            cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 label=x empty]         no label → label=x
   3.0s  operator    all up to date                     cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 label=x empty]
