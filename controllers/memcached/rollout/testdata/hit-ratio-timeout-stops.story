# The hit ratio does not recover in time. The next shard waits for the user, or for the recovery.

shards 2 at 1.6.38
hit ratio gate of 10m, then Stop
spec 1.6.45
run
----
   0.0s  user       requests 1.6.45                              cache-0 [1.6.38]                   cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0                            cache-0 [1.6.38]                   cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes                          cache-0 [1.6.38]                   cache-1 [1.6.38]
   3.0s  operator   AnnounceStop cache-0                         cache-0 [1.6.38 announced]         cache-1 [1.6.38]  1.6.38 → 1.6.45
   3.3s  agent      cache-0 reads the announced stop             cache-0 [1.6.38 announced]         cache-1 [1.6.38]
   3.3s  operator   UpdateInPlace cache-0                        cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   4.3s  kubelet    stops the container of cache-0               cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]
   4.3s  operator   Await cache-0                                cache-0 [1.6.38→1.6.45 starting]   cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  kubelet    starts 1.6.45 for cache-0                    cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  agent      cache-0 reports its start                    cache-0 [1.6.38→1.6.45]            cache-1 [1.6.38]
   6.3s  operator   PromoteTemplate cache-0                      cache-0 [1.6.45]                   cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.3s  operator   blocks cache-1: HitRatioNotRecovered         cache-0 [1.6.45]                   cache-1 [1.6.38]  waiting for shard cache-0's hit ratio to recover to 90% of its previous value (95.0%), in a minute with at least 1000 lookups
 606.3s  operator   requires intervention: HitRatioNotRecovered  cache-0 [1.6.45]                   cache-1 [1.6.38]  within 10m0s, shard cache-0's hit ratio didn't recover to 90% of its previous value (95.0%), in a minute with at least 1000 lookups

the hit ratio recovers after 15m
wait 10m
run
----
1206.3s  clock     10m pass                          cache-0 [1.6.45]  cache-1 [1.6.38]
1206.3s  operator  AnnounceStop cache-1              cache-0 [1.6.45]  cache-1 [1.6.38 announced]         1.6.38 → 1.6.45
1206.6s  agent     cache-1 reads the announced stop  cache-0 [1.6.45]  cache-1 [1.6.38 announced]
1206.6s  operator  UpdateInPlace cache-1             cache-0 [1.6.45]  cache-1 [1.6.38→1.6.45 announced]  1.6.38 → 1.6.45
1207.6s  kubelet   stops the container of cache-1    cache-0 [1.6.45]  cache-1 [1.6.38→1.6.45 starting]
1207.6s  operator  Await cache-1                     cache-0 [1.6.45]  cache-1 [1.6.38→1.6.45 starting]   1.6.38 → 1.6.45
1209.6s  kubelet   starts 1.6.45 for cache-1         cache-0 [1.6.45]  cache-1 [1.6.38→1.6.45]
1209.6s  agent     cache-1 reports its start         cache-0 [1.6.45]  cache-1 [1.6.38→1.6.45]
1209.6s  operator  PromoteTemplate cache-1           cache-0 [1.6.45]  cache-1 [1.6.45]                   1.6.38 → 1.6.45
1209.6s  operator  all up to date                    cache-0 [1.6.45]  cache-1 [1.6.45]
