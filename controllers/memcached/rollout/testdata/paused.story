# Paused in the middle of a shard's restart: the kubelet finishes what was begun, the operator does
# nothing until it may.

shards 2 at 1.6.38
spec 1.6.45
run until Change cache-0
pause
run
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  person    pauses                         cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]
   3.3s  operator  holds cache-0: Paused          cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  nothing is changed until spec.paused is false
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]

unpause
run
----
   6.3s  person    unpauses                       cache-0 [1.6.38→1.6.45]  cache-1 [1.6.38]
   6.3s  operator  Confirm cache-0                cache-0 [1.6.45]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
   6.3s  operator  Announce cache-1               cache-0 [1.6.45]         cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
   6.6s  agent     cache-1 reads of its stop      cache-0 [1.6.45]         cache-1 [1.6.38 announced]
   6.6s  operator  Change cache-1                 cache-0 [1.6.45]         cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
   7.6s  kubelet   ends the container of cache-1  cache-0 [1.6.45]         cache-1 [1.6.38→1.6.45 starting]
   7.6s  operator  Await cache-1                  cache-0 [1.6.45]         cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
   9.6s  kubelet   starts 1.6.45 for cache-1      cache-0 [1.6.45]         cache-1 [1.6.38→1.6.45]
   9.6s  agent     cache-1 tells how it started   cache-0 [1.6.45]         cache-1 [1.6.38→1.6.45]
   9.6s  operator  Confirm cache-1                cache-0 [1.6.45]         cache-1 [1.6.45]                   1.6.38 → 1.6.45
   9.6s  operator  is content                     cache-0 [1.6.45]         cache-1 [1.6.45]
