# The update continues after a cold start if the user accepts item loss, also after the rollback.

shards 2 at 1.6.38
image 1.6.45 loses the items
spec 1.6.45
run until requires intervention
----
   0.0s  user       requests 1.6.45                      cache-0 [1.6.38]                                 cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                    cache-0 [1.6.38]                                 cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                  cache-0 [1.6.38]                                 cache-1 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                 cache-0 [1.6.38 announced]                       cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop     cache-0 [1.6.38 announced]                       cache-1 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                cache-0 [1.6.38→1.6.45 announced]                cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]
   4.3s  operator   Await cache-0                        cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]
   6.3s  agent      cache-0 reports its start            cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]
   6.3s  operator   RecordFailure cache-0                cache-0 [1.6.38→1.6.45 empty, failed]            cache-1 [1.6.38]  it started empty
   6.3s  operator   AnnounceStop cache-0, rolling back   cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]  it started empty
   6.6s  agent      cache-0 reads the announced stop     cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]
   6.6s  operator   UpdateInPlace cache-0, rolling back  cache-0 [1.6.38 empty announced, failed]         cache-1 [1.6.38]  it started empty
   7.6s  kubelet    stops the container of cache-0       cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]
   7.6s  operator   requires intervention: UpdateFailed  cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]  it started empty

onItemLoss Continue
run
----
   7.6s  user       sets onItemLoss to Continue        cache-0 [1.6.38 starting]          cache-1 [1.6.38]
   7.6s  operator   Preflight cache-0                  cache-0 [1.6.38 starting]          cache-1 [1.6.38]                   checking image 1.6.45
  10.6s  preflight  image 1.6.45 passes                cache-0 [1.6.38 starting]          cache-1 [1.6.38]
  10.6s  operator   blocks cache-0: ShardInTransition  cache-0 [1.6.38 starting]          cache-1 [1.6.38]                   waiting for shard cache-0, which is starting
  12.6s  kubelet    starts 1.6.38 for cache-0          cache-0 [1.6.38]                   cache-1 [1.6.38]
  12.6s  operator   blocks cache-0: ShardInTransition  cache-0 [1.6.38]                   cache-1 [1.6.38]                   waiting for shard cache-0, which hasn't reported whether it started warm or cold
  12.6s  agent      cache-0 reports its start          cache-0 [1.6.38]                   cache-1 [1.6.38]
  12.6s  operator   AnnounceStop cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
  12.9s  agent      cache-0 reads the announced stop   cache-0 [1.6.38 announced]         cache-1 [1.6.38]
  12.9s  operator   UpdateInPlace cache-0              cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
  13.9s  kubelet    stops the container of cache-0     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
  13.9s  operator   Await cache-0                      cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  kubelet    starts 1.6.45 for cache-0          cache-0 [1.6.38→1.6.45 empty]      cache-1 [1.6.38]
  15.9s  agent      cache-0 reports its start          cache-0 [1.6.38→1.6.45 empty]      cache-1 [1.6.38]
  15.9s  operator   PromoteTemplate cache-0            cache-0 [1.6.45 empty]             cache-1 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  operator   AnnounceStop cache-1               cache-0 [1.6.45 empty]             cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
  16.2s  agent      cache-1 reads the announced stop   cache-0 [1.6.45 empty]             cache-1 [1.6.38 announced]
  16.2s  operator   UpdateInPlace cache-1              cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  17.2s  kubelet    stops the container of cache-1     cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 starting]
  17.2s  operator   Await cache-1                      cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  19.2s  kubelet    starts 1.6.45 for cache-1          cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 empty]
  19.2s  agent      cache-1 reports its start          cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 empty]
  19.2s  operator   PromoteTemplate cache-1            cache-0 [1.6.45 empty]             cache-1 [1.6.45 empty]             1.6.38 → 1.6.45
  19.2s  operator   all up to date                     cache-0 [1.6.45 empty]             cache-1 [1.6.45 empty]
