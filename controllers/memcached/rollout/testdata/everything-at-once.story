# A version, arguments, a label and resources in one go: resized first, and the rest in one write
# with one restart.

shards 2 at 1.6.38
spec 1.6.45 -t8 cpu=2 label=x
run
----
   0.0s  person    asks for 1.6.45 -t8 cpu=2 label=x            cache-0 [1.6.38]                                     cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                                cache-0 [1.6.38]                                     cache-1 [1.6.38]                                     proving image 1.6.45
   3.0s  proof     proves image 1.6.45                          cache-0 [1.6.38]                                     cache-1 [1.6.38]
   3.0s  operator  Resize cache-0                               cache-0 [1.6.38 resizing]                            cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   4.0s  kubelet   resizes the pod of cache-0                   cache-0 [1.6.38]                                     cache-1 [1.6.38]
   4.0s  operator  Announce cache-0                             cache-0 [1.6.38 announced]                           cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   4.3s  agent     cache-0 reads of its stop                    cache-0 [1.6.38 announced]                           cache-1 [1.6.38]
   4.3s  operator  Change cache-0                               cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x announced]  cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   5.3s  kubelet   ends the container of cache-0                cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   cache-1 [1.6.38]
   5.3s  operator  Await cache-0                                cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   7.3s  kubelet   starts 1.6.45 -t8 cpu=2 label=x for cache-0  cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x]            cache-1 [1.6.38]
   7.3s  agent     cache-0 tells how it started                 cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x]            cache-1 [1.6.38]
   7.3s  operator  Confirm cache-0                              cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   7.3s  operator  Resize cache-1                               cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 resizing]                            1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   8.3s  kubelet   resizes the pod of cache-1                   cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38]
   8.3s  operator  Announce cache-1                             cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 announced]                           1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   8.6s  agent     cache-1 reads of its stop                    cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 announced]
   8.6s  operator  Change cache-1                               cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x announced]  1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   9.6s  kubelet   ends the container of cache-1                cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]
   9.6s  operator  Await cache-1                                cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
  11.6s  kubelet   starts 1.6.45 -t8 cpu=2 label=x for cache-1  cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x]
  11.6s  agent     cache-1 tells how it started                 cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x]
  11.6s  operator  Confirm cache-1                              cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.45 -t8 cpu=2 label=x]                   1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
  11.6s  operator  is content                                   cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.45 -t8 cpu=2 label=x]
