# Version, arguments, label and resources change together: the pod is resized first, and everything
# else is one write with one restart.

shards 2 at 1.6.38
spec 1.6.45 -t8 cpu=2 label=x
run
----
   0.0s  user       requests 1.6.45 -t8 cpu=2 label=x            cache-0 [1.6.38]                                     cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                            cache-0 [1.6.38]                                     cache-1 [1.6.38]                                     checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                          cache-0 [1.6.38]                                     cache-1 [1.6.38]
   3.0s  operator   Resize cache-0                               cache-0 [1.6.38 resizing]                            cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   4.0s  kubelet    resizes the pod of cache-0                   cache-0 [1.6.38]                                     cache-1 [1.6.38]
   4.0s  operator   AnnounceStop cache-0                         cache-0 [1.6.38 announced]                           cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   4.3s  agent      cache-0 reads the announced stop             cache-0 [1.6.38 announced]                           cache-1 [1.6.38]
   4.3s  operator   UpdateInPlace cache-0                        cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x announced]  cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   5.3s  kubelet    stops the container of cache-0               cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   cache-1 [1.6.38]
   5.3s  operator   Await cache-0                                cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   7.3s  kubelet    starts 1.6.45 -t8 cpu=2 label=x for cache-0  cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x]            cache-1 [1.6.38]
   7.3s  agent      cache-0 reports its start                    cache-0 [1.6.38→1.6.45 -t8 cpu=2 label=x]            cache-1 [1.6.38]
   7.3s  operator   PromoteTemplate cache-0                      cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38]                                     1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   7.3s  operator   Resize cache-1                               cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 resizing]                            1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   8.3s  kubelet    resizes the pod of cache-1                   cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38]
   8.3s  operator   AnnounceStop cache-1                         cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 announced]                           1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   8.6s  agent      cache-1 reads the announced stop             cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38 announced]
   8.6s  operator   UpdateInPlace cache-1                        cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x announced]  1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
   9.6s  kubelet    stops the container of cache-1               cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]
   9.6s  operator   Await cache-1                                cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x starting]   1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
  11.6s  kubelet    starts 1.6.45 -t8 cpu=2 label=x for cache-1  cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x]
  11.6s  agent      cache-1 reports its start                    cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.38→1.6.45 -t8 cpu=2 label=x]
  11.6s  operator   PromoteTemplate cache-1                      cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.45 -t8 cpu=2 label=x]                   1.6.38 → 1.6.45, no arguments → -t8, cpu=1 → cpu=2, no label → label=x
  11.6s  operator   all up to date                               cache-0 [1.6.45 -t8 cpu=2 label=x]                   cache-1 [1.6.45 -t8 cpu=2 label=x]
