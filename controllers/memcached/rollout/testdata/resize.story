# Resources are resized in place. The update waits until the node has room.

shards 2 at 1.6.38
nodes have no room for cpu=2 yet
spec 1.6.38 cpu=2
run
----
   0.0s  user      requests 1.6.38 cpu=2  cache-0 [1.6.38]           cache-1 [1.6.38]
   0.0s  operator  Resize cache-0         cache-0 [1.6.38 resizing]  cache-1 [1.6.38]  cpu=1 → cpu=2
   0.0s  operator  Await cache-0          cache-0 [1.6.38 resizing]  cache-1 [1.6.38]  cpu=1 → cpu=2: the node has no room for it yet

nodes have room for cpu=2
run
----
   0.0s  node      has room for cpu=2          cache-0 [1.6.38 resizing]      cache-1 [1.6.38]
   0.0s  operator  Await cache-0               cache-0 [1.6.38 resizing]      cache-1 [1.6.38]               cpu=1 → cpu=2: the kubelet resizes the pod
   1.0s  kubelet   resizes the pod of cache-0  cache-0 [1.6.38]               cache-1 [1.6.38]
   1.0s  operator  UpdateInPlace cache-0       cache-0 [1.6.38→1.6.38 cpu=2]  cache-1 [1.6.38]               cpu=1 → cpu=2
   1.0s  operator  PromoteTemplate cache-0     cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38]               cpu=1 → cpu=2
   1.0s  operator  Resize cache-1              cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38 resizing]      cpu=1 → cpu=2
   2.0s  kubelet   resizes the pod of cache-1  cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38]
   2.0s  operator  UpdateInPlace cache-1       cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38→1.6.38 cpu=2]  cpu=1 → cpu=2
   2.0s  operator  PromoteTemplate cache-1     cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38 cpu=2]         cpu=1 → cpu=2
   2.0s  operator  all up to date              cache-0 [1.6.38 cpu=2]         cache-1 [1.6.38 cpu=2]
