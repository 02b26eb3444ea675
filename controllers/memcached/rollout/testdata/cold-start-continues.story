# The same, and the person does not mind: also after it was stopped, saying so goes on.

shards 2 at 1.6.38
image 1.6.45 loses the items
spec 1.6.45
run until needs a person
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                                 cache-1 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                                 cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                                 cache-1 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]                       cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]                       cache-1 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]                cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]
   4.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]                 cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]
   6.3s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45 empty]                    cache-1 [1.6.38]
   6.3s  operator  Note cache-0                   cache-0 [1.6.38→1.6.45 empty, failed]            cache-1 [1.6.38]  it started empty
   6.3s  operator  Announce cache-0 back          cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]  it started empty
   6.6s  agent     cache-0 reads of its stop      cache-0 [1.6.38→1.6.45 empty announced, failed]  cache-1 [1.6.38]
   6.6s  operator  Change cache-0 back            cache-0 [1.6.38 empty announced, failed]         cache-1 [1.6.38]  it started empty
   7.6s  kubelet   ends the container of cache-0  cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]
   7.6s  operator  needs a person: UpdateFailed   cache-0 [1.6.38 starting, failed]                cache-1 [1.6.38]  it started empty

when not warm Continue
run
----
   7.6s  person    says: when not warm, Continue    cache-0 [1.6.38 starting]          cache-1 [1.6.38]
   7.6s  operator  Prove cache-0                    cache-0 [1.6.38 starting]          cache-1 [1.6.38]                   proving image 1.6.45
  10.6s  proof     proves image 1.6.45              cache-0 [1.6.38 starting]          cache-1 [1.6.38]
  10.6s  operator  holds cache-0: ShardsNotSettled  cache-0 [1.6.38 starting]          cache-1 [1.6.38]                   waiting for shard cache-0, which starts
  12.6s  kubelet   starts 1.6.38 for cache-0        cache-0 [1.6.38]                   cache-1 [1.6.38]
  12.6s  operator  holds cache-0: ShardsNotSettled  cache-0 [1.6.38]                   cache-1 [1.6.38]                   waiting for shard cache-0, which has not told yet how it started
  12.6s  agent     cache-0 tells how it started     cache-0 [1.6.38]                   cache-1 [1.6.38]
  12.6s  operator  Announce cache-0                 cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   1.6.38 → 1.6.45
  12.9s  agent     cache-0 reads of its stop        cache-0 [1.6.38 announced]         cache-1 [1.6.38]
  12.9s  operator  Change cache-0                   cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   1.6.38 → 1.6.45
  13.9s  kubelet   ends the container of cache-0    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
  13.9s  operator  Await cache-0                    cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  kubelet   starts 1.6.45 for cache-0        cache-0 [1.6.38→1.6.45 empty]      cache-1 [1.6.38]
  15.9s  agent     cache-0 tells how it started     cache-0 [1.6.38→1.6.45 empty]      cache-1 [1.6.38]
  15.9s  operator  Confirm cache-0                  cache-0 [1.6.45 empty]             cache-1 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  operator  Announce cache-1                 cache-0 [1.6.45 empty]             cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
  16.2s  agent     cache-1 reads of its stop        cache-0 [1.6.45 empty]             cache-1 [1.6.38 announced]
  16.2s  operator  Change cache-1                   cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  17.2s  kubelet   ends the container of cache-1    cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 starting]
  17.2s  operator  Await cache-1                    cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  19.2s  kubelet   starts 1.6.45 for cache-1        cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 empty]
  19.2s  agent     cache-1 tells how it started     cache-0 [1.6.45 empty]             cache-1 [1.6.38→1.6.45 empty]
  19.2s  operator  Confirm cache-1                  cache-0 [1.6.45 empty]             cache-1 [1.6.45 empty]             1.6.38 → 1.6.45
  19.2s  operator  is content                       cache-0 [1.6.45 empty]             cache-1 [1.6.45 empty]
