# The target goes back between the announcement and the stop: the announcement is taken back, or
# the end of the pod would be taken for the end of its container.

shards 2 at 1.6.38
spec 1.6.45
run until Announce cache-0
----
   0.0s  person    asks for 1.6.45      cache-0 [1.6.38]            cache-1 [1.6.38]
   0.0s  operator  Prove cache-0        cache-0 [1.6.38]            cache-1 [1.6.38]  proving image 1.6.45
   3.0s  proof     proves image 1.6.45  cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator  Announce cache-0     cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45

spec 1.6.38
run
----
   3.0s  person    asks for 1.6.38   cache-0 [1.6.38 announced]  cache-1 [1.6.38]
   3.0s  operator  Withdraw cache-0  cache-0 [1.6.38]            cache-1 [1.6.38]  its restart is not to come
   3.0s  operator  is content        cache-0 [1.6.38]            cache-1 [1.6.38]

# The same for a spec that is not valid any more, and for a shard that falls out beside it.
spec 1.6.45
run until Announce cache-0
the spec is not valid
run
----
   3.0s  person    asks for 1.6.45                  cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator  Prove cache-0                    cache-0 [1.6.38]            cache-1 [1.6.38]  proving image 1.6.45
   6.0s  proof     proves image 1.6.45              cache-0 [1.6.38]            cache-1 [1.6.38]
   6.0s  operator  Announce cache-0                 cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.0s  person    writes a spec that is not valid  cache-0 [1.6.38 announced]  cache-1 [1.6.38]
   6.0s  operator  Withdraw cache-0                 cache-0 [1.6.38]            cache-1 [1.6.38]  its restart is not to come
   6.0s  operator  holds cache-0: SpecInvalid       cache-0 [1.6.38]            cache-1 [1.6.38]  timeZone "Mars" is not known

the spec is valid
run until Announce cache-0
crash cache-1
run until Change cache-0
----
   6.0s  person    writes a spec that is valid      cache-0 [1.6.38]                   cache-1 [1.6.38]
   6.0s  operator  Announce cache-0                 cache-0 [1.6.38 announced]         cache-1 [1.6.38]         1.6.38 → 1.6.45
   6.0s  kernel    kills memcached of cache-1       cache-0 [1.6.38 announced]         cache-1 [1.6.38 broken]
   6.0s  operator  Withdraw cache-0                 cache-0 [1.6.38]                   cache-1 [1.6.38 broken]  its restart is not to come
  16.0s  kubelet   starts 1.6.38 for cache-1 again  cache-0 [1.6.38]                   cache-1 [1.6.38 empty]
  16.0s  operator  holds cache-0: ShardsNotSettled  cache-0 [1.6.38]                   cache-1 [1.6.38 empty]   waiting for shard cache-1, which has not told yet how it started
  16.0s  agent     cache-1 tells how it started     cache-0 [1.6.38]                   cache-1 [1.6.38 empty]
  16.0s  operator  Announce cache-0                 cache-0 [1.6.38 announced]         cache-1 [1.6.38 empty]   1.6.38 → 1.6.45
  16.3s  agent     cache-0 reads of its stop        cache-0 [1.6.38 announced]         cache-1 [1.6.38 empty]
  16.3s  operator  Change cache-0                   cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38 empty]   1.6.38 → 1.6.45
