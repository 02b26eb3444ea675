# Labels disturb no shard: they wait for no gate, not even for a shard that is being moved.

shards 3 at 1.6.38
at least 1h between shards
the window opens in 2h
drain cache-2
spec 1.6.38 label=x
run
----
   0.0s  node        is drained of cache-2              cache-0 [1.6.38]                 cache-1 [1.6.38]                 cache-2 [1.6.38 going]
   0.0s  person      asks for 1.6.38 label=x            cache-0 [1.6.38]                 cache-1 [1.6.38]                 cache-2 [1.6.38 going]
   0.0s  operator    Change cache-0                     cache-0 [1.6.38→1.6.38 label=x]  cache-1 [1.6.38]                 cache-2 [1.6.38 going]                 no label → label=x
   1.0s  kubelet     the pod 1.6.38 of cache-2 is gone  cache-0 [1.6.38→1.6.38 label=x]  cache-1 [1.6.38]                 cache-2 [1.6.38 no pod]
   1.0s  operator    Confirm cache-0                    cache-0 [1.6.38 label=x]         cache-1 [1.6.38]                 cache-2 [1.6.38 no pod]                no label → label=x
   1.0s  ReplicaSet  makes a pod for cache-2            cache-0 [1.6.38 label=x]         cache-1 [1.6.38]                 cache-2 [1.6.38 starting]
   1.0s  operator    Change cache-1                     cache-0 [1.6.38 label=x]         cache-1 [1.6.38→1.6.38 label=x]  cache-2 [1.6.38 starting]              no label → label=x
   3.0s  kubelet     starts 1.6.38 for cache-2          cache-0 [1.6.38 label=x]         cache-1 [1.6.38→1.6.38 label=x]  cache-2 [1.6.38 empty]
   3.0s  operator    Confirm cache-1                    cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 empty]                 no label → label=x
   3.0s  agent       cache-2 tells how it started       cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 empty]
   3.0s  operator    Change cache-2                     cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38→1.6.38 label=x empty]  no label → label=x
   3.0s  operator    Confirm cache-2                    cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 label=x empty]         no label → label=x
   3.0s  operator    is content                         cache-0 [1.6.38 label=x]         cache-1 [1.6.38 label=x]         cache-2 [1.6.38 label=x empty]
