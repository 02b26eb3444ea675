# A version that starts in its proof but crashes with the shard's items: it is tried on one shard,
# noted, and taken back with the items that its file still holds. The others are left alone until
# the person has it tried again.

shards 3 at 1.6.38
image 1.6.45 crashes
spec 1.6.45
run
----
   0.0s  person    asks for 1.6.45                cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator  Prove cache-0                  cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45            cache-0 [1.6.38]                        cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator  Announce cache-0               cache-0 [1.6.38 announced]              cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]              cache-1 [1.6.38]  cache-2 [1.6.38]
   3.3s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]       cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]  cache-2 [1.6.38]
   4.3s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]        cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45 broken]          cache-1 [1.6.38]  cache-2 [1.6.38]
   6.3s  operator  Note cache-0                   cache-0 [1.6.38→1.6.45 broken, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   6.3s  operator  Change cache-0 back            cache-0 [1.6.38 broken, failed]         cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   7.3s  kubelet   ends the container of cache-0  cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  cache-2 [1.6.38]
   7.3s  operator  needs a person: UpdateFailed   cache-0 [1.6.38 starting, failed]       cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes
   9.3s  kubelet   starts 1.6.38 for cache-0      cache-0 [1.6.38, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]
   9.3s  agent     cache-0 tells how it started   cache-0 [1.6.38, failed]                cache-1 [1.6.38]  cache-2 [1.6.38]

# Mended or not, nothing is tried again by itself.
image 1.6.45 is mended
run
----
   9.3s  person    mends image 1.6.45            cache-0 [1.6.38, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]
   9.3s  operator  needs a person: UpdateFailed  cache-0 [1.6.38, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.45 crashes

retry
run
----
   9.3s  person    has it tried again             cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
   9.3s  operator  Prove cache-0                  cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   proving image 1.6.45
  12.3s  proof     proves image 1.6.45            cache-0 [1.6.38]                   cache-1 [1.6.38]                   cache-2 [1.6.38]
  12.3s  operator  Announce cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  12.6s  agent     cache-0 reads of its stop      cache-0 [1.6.38 announced]         cache-1 [1.6.38]                   cache-2 [1.6.38]
  12.6s  operator  Change cache-0                 cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  13.6s  kubelet   ends the container of cache-0  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]
  13.6s  operator  Await cache-0                  cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.6s  kubelet   starts 1.6.45 for cache-0      cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
  15.6s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]                   cache-2 [1.6.38]
  15.6s  operator  Confirm cache-0                cache-0 [1.6.45]                   cache-1 [1.6.38]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.6s  operator  Announce cache-1               cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]                   1.6.38 → 1.6.45
  15.9s  agent     cache-1 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.38 announced]         cache-2 [1.6.38]
  15.9s  operator  Change cache-1                 cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 announced]  cache-2 [1.6.38]                   1.6.38 → 1.6.45
  16.9s  kubelet   ends the container of cache-1  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]
  16.9s  operator  Await cache-1                  cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45 starting]   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  18.9s  kubelet   starts 1.6.45 for cache-1      cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
  18.9s  agent     cache-1 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.38→1.6.45]            cache-2 [1.6.38]
  18.9s  operator  Confirm cache-1                cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38]                   1.6.38 → 1.6.45
  18.9s  operator  Announce cache-2               cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]         1.6.38 → 1.6.45
  19.2s  agent     cache-2 reads of its stop      cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38 announced]
  19.2s  operator  Change cache-2                 cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
  20.2s  kubelet   ends the container of cache-2  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]
  20.2s  operator  Await cache-2                  cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
  22.2s  kubelet   starts 1.6.45 for cache-2      cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  22.2s  agent     cache-2 tells how it started   cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.38→1.6.45]
  22.2s  operator  Confirm cache-2                cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]                   1.6.38 → 1.6.45
  22.2s  operator  is content                     cache-0 [1.6.45]                   cache-1 [1.6.45]                   cache-2 [1.6.45]
