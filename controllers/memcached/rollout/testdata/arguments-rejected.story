# memcached does not start with the arguments. The agent keeps serving with the former ones and
# reports it.

shards 3 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x
run
----
   0.0s  user      requests 1.6.38 -x                   cache-0 [1.6.38]                    cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator  UpdateInPlace cache-0                cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]  no arguments → -x
   1.0s  agent     cache-0 rejects -x                   cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]
   1.0s  operator  Await cache-0                        cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]  no arguments → -x
   5.2s  operator  RecordFailure cache-0                cache-0 [1.6.38→1.6.38 -x, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  memcached doesn't start with -x
   5.2s  operator  UpdateInPlace cache-0, rolling back  cache-0 [1.6.38, failed]            cache-1 [1.6.38]  cache-2 [1.6.38]  memcached doesn't start with -x
   5.2s  operator  requires intervention: UpdateFailed  cache-0 [1.6.38, failed]            cache-1 [1.6.38]  cache-2 [1.6.38]  memcached doesn't start with -x
