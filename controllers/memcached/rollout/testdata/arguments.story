# The agent restarts memcached in its container. Arguments need no preflight check and no
# announcement.

shards 2 at 1.6.38
spec 1.6.38 -t8
run
----
   0.0s  user      requests 1.6.38 -t8            cache-0 [1.6.38]                      cache-1 [1.6.38]
   0.0s  operator  UpdateInPlace cache-0          cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]                      no arguments → -t8
   1.0s  agent     restarts memcached of cache-0  cache-0 [1.6.38→1.6.38 -t8 starting]  cache-1 [1.6.38]
   1.0s  operator  Await cache-0                  cache-0 [1.6.38→1.6.38 -t8 starting]  cache-1 [1.6.38]                      no arguments → -t8
   3.0s  kubelet   starts 1.6.38 -t8 for cache-0  cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]
   3.0s  agent     cache-0 reports its start      cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]
   3.0s  operator  PromoteTemplate cache-0        cache-0 [1.6.38 -t8]                  cache-1 [1.6.38]                      no arguments → -t8
   3.0s  operator  UpdateInPlace cache-1          cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]           no arguments → -t8
   4.0s  agent     restarts memcached of cache-1  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8 starting]
   4.0s  operator  Await cache-1                  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8 starting]  no arguments → -t8
   6.0s  kubelet   starts 1.6.38 -t8 for cache-1  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]
   6.0s  agent     cache-1 reports its start      cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]
   6.0s  operator  PromoteTemplate cache-1        cache-0 [1.6.38 -t8]                  cache-1 [1.6.38 -t8]                  no arguments → -t8
   6.0s  operator  all up to date                 cache-0 [1.6.38 -t8]                  cache-1 [1.6.38 -t8]
