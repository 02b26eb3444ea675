# The spec is reverted after the pod was resized and before the rest of the update: the resources
# are reverted, too.

shards 2 at 1.6.38
spec 1.6.38 -t8 cpu=2
run until Resize cache-0
spec 1.6.38
run
----
   0.0s  user      requests 1.6.38 -t8 cpu=2  cache-0 [1.6.38]           cache-1 [1.6.38]
   0.0s  operator  Resize cache-0             cache-0 [1.6.38 resizing]  cache-1 [1.6.38]  no arguments → -t8, cpu=1 → cpu=2
   0.0s  user      requests 1.6.38            cache-0 [1.6.38 resizing]  cache-1 [1.6.38]
   0.0s  operator  Revert cache-0             cache-0 [1.6.38]           cache-1 [1.6.38]  the pod has the resources of an earlier spec
   0.0s  operator  all up to date             cache-0 [1.6.38]           cache-1 [1.6.38]

# A third spec has other resources: they replace those of the second.
spec 1.6.38 -t8 cpu=2
run until Resize cache-0
spec 1.6.38 cpu=4
run
----
   0.0s  user      requests 1.6.38 -t8 cpu=2   cache-0 [1.6.38]               cache-1 [1.6.38]
   0.0s  operator  Resize cache-0              cache-0 [1.6.38 resizing]      cache-1 [1.6.38]               no arguments → -t8, cpu=1 → cpu=2
   0.0s  user      requests 1.6.38 cpu=4       cache-0 [1.6.38 resizing]      cache-1 [1.6.38]
   0.0s  operator  Revert cache-0              cache-0 [1.6.38]               cache-1 [1.6.38]               the pod has the resources of an earlier spec
   0.0s  operator  Resize cache-0              cache-0 [1.6.38 resizing]      cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  kubelet   resizes the pod of cache-0  cache-0 [1.6.38]               cache-1 [1.6.38]
   1.0s  operator  UpdateInPlace cache-0       cache-0 [1.6.38→1.6.38 cpu=4]  cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  operator  PromoteTemplate cache-0     cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  operator  Resize cache-1              cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 resizing]      cpu=1 → cpu=4
   2.0s  kubelet   resizes the pod of cache-1  cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38]
   2.0s  operator  UpdateInPlace cache-1       cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38→1.6.38 cpu=4]  cpu=1 → cpu=4
   2.0s  operator  PromoteTemplate cache-1     cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 cpu=4]         cpu=1 → cpu=4
   2.0s  operator  all up to date              cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 cpu=4]
