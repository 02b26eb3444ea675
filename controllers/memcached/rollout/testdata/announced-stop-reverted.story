# The spec is reverted between the announcement and the stop. The announcement is reverted, too: the
# agent would take the pod's termination for a restart of its container.

shards 2 at 1.6.38
spec 1.6.45
run until AnnounceStop cache-0
----
   0.0s  user       requests 1.6.45       cache-0 [1.6.38]            cache-1 [1.6.38]
   0.0s  operator   Preflight cache-0     cache-0 [1.6.38]            cache-1 [1.6.38]  checking image 1.6.45
   3.0s  preflight  image 1.6.45 passes   cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator   AnnounceStop cache-0  cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45

spec 1.6.38
run
----
   3.0s  user      requests 1.6.38  cache-0 [1.6.38 announced]  cache-1 [1.6.38]
   3.0s  operator  Revert cache-0   cache-0 [1.6.38]            cache-1 [1.6.38]  the announced restart is no longer needed
   3.0s  operator  all up to date   cache-0 [1.6.38]            cache-1 [1.6.38]

# The same if the spec becomes invalid, or another shard becomes unavailable.
spec 1.6.45
run until AnnounceStop cache-0
the spec is invalid
run
----
   3.0s  user       requests 1.6.45                        cache-0 [1.6.38]            cache-1 [1.6.38]
   3.0s  operator   Preflight cache-0                      cache-0 [1.6.38]            cache-1 [1.6.38]  checking image 1.6.45
   6.0s  preflight  image 1.6.45 passes                    cache-0 [1.6.38]            cache-1 [1.6.38]
   6.0s  operator   AnnounceStop cache-0                   cache-0 [1.6.38 announced]  cache-1 [1.6.38]  1.6.38 → 1.6.45
   6.0s  user       sets a spec that is invalid            cache-0 [1.6.38 announced]  cache-1 [1.6.38]
   6.0s  operator   Revert cache-0                         cache-0 [1.6.38]            cache-1 [1.6.38]  the announced restart is no longer needed
   6.0s  operator   blocks cache-0: UpdateStrategyInvalid  cache-0 [1.6.38]            cache-1 [1.6.38]  timeZone "Mars" is unknown

the spec is valid
run until AnnounceStop cache-0
crash cache-1
run until UpdateInPlace cache-0
----
   6.0s  user      sets a spec that is valid          cache-0 [1.6.38]                   cache-1 [1.6.38]
   6.0s  operator  AnnounceStop cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38]         1.6.38 → 1.6.45
   6.0s  kernel    kills memcached of cache-1         cache-0 [1.6.38 announced]         cache-1 [1.6.38 broken]
   6.0s  operator  Revert cache-0                     cache-0 [1.6.38]                   cache-1 [1.6.38 broken]  the announced restart is no longer needed
  16.0s  kubelet   starts 1.6.38 for cache-1 again    cache-0 [1.6.38]                   cache-1 [1.6.38 empty]
  16.0s  operator  blocks cache-0: ShardInTransition  cache-0 [1.6.38]                   cache-1 [1.6.38 empty]   waiting for shard cache-1, which hasn't reported whether it started warm or cold
  16.0s  agent     cache-1 reports its start          cache-0 [1.6.38]                   cache-1 [1.6.38 empty]
  16.0s  operator  AnnounceStop cache-0               cache-0 [1.6.38 announced]         cache-1 [1.6.38 empty]   1.6.38 → 1.6.45
  16.3s  agent     cache-0 reads the announced stop   cache-0 [1.6.38 announced]         cache-1 [1.6.38 empty]
  16.3s  operator  UpdateInPlace cache-0              cache-0 [1.6.38→1.6.45 announced]  cache-1 [1.6.38 empty]   1.6.38 → 1.6.45
