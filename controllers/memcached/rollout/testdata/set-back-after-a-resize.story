# The target goes back after the pod was resized for it, and before the rest of the change: the
# resources go back too.

shards 2 at 1.6.38
spec 1.6.38 -t8 cpu=2
run until Resize cache-0
spec 1.6.38
run
----
   0.0s  person    asks for 1.6.38 -t8 cpu=2  cache-0 [1.6.38]           cache-1 [1.6.38]
   0.0s  operator  Resize cache-0             cache-0 [1.6.38 resizing]  cache-1 [1.6.38]  no arguments → -t8, cpu=1 → cpu=2
   0.0s  person    asks for 1.6.38            cache-0 [1.6.38 resizing]  cache-1 [1.6.38]
   0.0s  operator  Withdraw cache-0           cache-0 [1.6.38]           cache-1 [1.6.38]  its resources were for a spec that is no more
   0.0s  operator  is content                 cache-0 [1.6.38]           cache-1 [1.6.38]

# A third target, with other resources: they go over the former ones.
spec 1.6.38 -t8 cpu=2
run until Resize cache-0
spec 1.6.38 cpu=4
run
----
   0.0s  person    asks for 1.6.38 -t8 cpu=2   cache-0 [1.6.38]               cache-1 [1.6.38]
   0.0s  operator  Resize cache-0              cache-0 [1.6.38 resizing]      cache-1 [1.6.38]               no arguments → -t8, cpu=1 → cpu=2
   0.0s  person    asks for 1.6.38 cpu=4       cache-0 [1.6.38 resizing]      cache-1 [1.6.38]
   0.0s  operator  Withdraw cache-0            cache-0 [1.6.38]               cache-1 [1.6.38]               its resources were for a spec that is no more
   0.0s  operator  Resize cache-0              cache-0 [1.6.38 resizing]      cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  kubelet   resizes the pod of cache-0  cache-0 [1.6.38]               cache-1 [1.6.38]
   1.0s  operator  Change cache-0              cache-0 [1.6.38→1.6.38 cpu=4]  cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  operator  Confirm cache-0             cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38]               cpu=1 → cpu=4
   1.0s  operator  Resize cache-1              cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 resizing]      cpu=1 → cpu=4
   2.0s  kubelet   resizes the pod of cache-1  cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38]
   2.0s  operator  Change cache-1              cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38→1.6.38 cpu=4]  cpu=1 → cpu=4
   2.0s  operator  Confirm cache-1             cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 cpu=4]         cpu=1 → cpu=4
   2.0s  operator  is content                  cache-0 [1.6.38 cpu=4]         cache-1 [1.6.38 cpu=4]
