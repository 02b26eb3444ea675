# Arguments that memcached does not start with: the agent serves on with the old ones and says so.

shards 3 at 1.6.38
memcached does not start with -x
spec 1.6.38 -x
run
----
   0.0s  person    asks for 1.6.38 -x            cache-0 [1.6.38]                    cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator  Change cache-0                cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]  no arguments → -x
   1.0s  agent     cache-0 refuses -x            cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]
   1.0s  operator  Await cache-0                 cache-0 [1.6.38→1.6.38 -x]          cache-1 [1.6.38]  cache-2 [1.6.38]  no arguments → -x
   5.2s  operator  Note cache-0                  cache-0 [1.6.38→1.6.38 -x, failed]  cache-1 [1.6.38]  cache-2 [1.6.38]  memcached does not start with -x
   5.2s  operator  Change cache-0 back           cache-0 [1.6.38, failed]            cache-1 [1.6.38]  cache-2 [1.6.38]  memcached does not start with -x
   5.2s  operator  needs a person: UpdateFailed  cache-0 [1.6.38, failed]            cache-1 [1.6.38]  cache-2 [1.6.38]  memcached does not start with -x
