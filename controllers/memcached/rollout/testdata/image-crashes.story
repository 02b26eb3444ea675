# A version passes its checks but crashes with the items of a shard. The failure is recorded and the
# shard rolled back with the items of its saved file. The others are not changed until the user
# retries.

shards 3 at 1.6.38
image 1.6.45 crashes
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                      cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                    cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                  cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                 cache-0 [1.6.38 announced]              cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop     cache-0 [1.6.38 announced]              cache-1 [1.6.38]  cache-2 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]  cache-2 [1.6.38]
   4.3s  operator   Await cache-0                        cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0            cache-0 [1.6.38→1.6.45 broken]          cache-1 [1.6.38]  cache-2 [1.6.38]
   6.3s  operator   RecordFailure cache-0                cache-0 [1.6.38→1.6.45 broken, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   6.3s  operator   UpdateInPlace cache-0, rolling back  cache-0 [1.6.38 broken, failed]         cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   7.3s  kubelet    stops the container of cache-0       cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  cache-2 [1.6.38]
   7.3s  operator   requires intervention: UpdateFailed  cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   9.3s  kubelet    starts 1.6.38 for cache-0            cache-0 [1.6.38, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]
   9.3s  agent      cache-0 reports its start            cache-0 [1.6.38, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]

# The operator does not retry by itself, even if the image is fixed.
image 1.6.45 is fixed
run
----
   9.3s  user      fixes image 1.6.45                   cache-0 [1.6.38, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]
   9.3s  operator  requires intervention: UpdateFailed  cache-0 [1.6.38, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes

retry
run
----
   9.3s  user       retries                           cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
   9.3s  operator   Preflight cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   checking image 1.6.45
  12.3s  preflight  image 1.6.45 passes               cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
  12.3s  operator   AnnounceStop cache-0              cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  agent      cache-0 reads the announced stop  cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]
  12.6s  operator   UpdateInPlace cache-0             cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  13.6s  kubelet    stops the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]
  13.6s  operator   Await cache-0                     cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.6s  kubelet    starts 1.6.45 for cache-0         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
  15.6s  agent      cache-0 reports its start         cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
  15.6s  operator   PromoteTemplate cache-0           cache-0 [1.6.45]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.6s  operator   AnnounceStop cache-1              cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  agent      cache-1 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]
  15.9s  operator   UpdateInPlace cache-1             cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  cache-2 [1.6.38]                   1.6.38 → 1.6.45
  16.9s  kubelet    stops the container of cache-1    cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]
  16.9s  operator   Await cache-1                     cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  18.9s  kubelet    starts 1.6.45 for cache-1         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
  18.9s  agent      cache-1 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
  18.9s  operator   PromoteTemplate cache-1           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  18.9s  operator   AnnounceStop cache-2              cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]         1.6.38 → 1.6.45
  19.2s  agent      cache-2 reads the announced stop  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]
  19.2s  operator   UpdateInPlace cache-2             cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  20.2s  kubelet    stops the container of cache-2    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]
  20.2s  operator   Await cache-2                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  22.2s  kubelet    starts 1.6.45 for cache-2         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  22.2s  agent      cache-2 reports its start         cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  22.2s  operator   PromoteTemplate cache-2           cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]                   1.6.38 → 1.6.45
  22.2s  operator   all up to date                    cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]
