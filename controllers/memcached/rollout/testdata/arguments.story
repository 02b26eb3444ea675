# Other arguments: the agent restarts memcached in its container. No image, no proof, no announcement.

shards 2 at 1.6.38
spec 1.6.38 -t8
run
----
   0.0s  person    asks for 1.6.38 -t8            cache-0 [1.6.38]                      cache-1 [1.6.38]
   0.0s  operator  Change cache-0                 cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]                      no arguments → -t8
   1.0s  agent     restarts memcached of cache-0  cache-0 [1.6.38→1.6.38 -t8 starting]  cache-1 [1.6.38]
   1.0s  operator  Await cache-0                  cache-0 [1.6.38→1.6.38 -t8 starting]  cache-1 [1.6.38]                      no arguments → -t8
   3.0s  kubelet   starts 1.6.38 -t8 for cache-0  cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]
   3.0s  agent     cache-0 tells how it started   cache-0 [1.6.38→1.6.38 -t8]           cache-1 [1.6.38]
   3.0s  operator  Confirm cache-0                cache-0 [1.6.38 -t8]                  cache-1 [1.6.38]                      no arguments → -t8
   3.0s  operator  Change cache-1                 cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]           no arguments → -t8
   4.0s  agent     restarts memcached of cache-1  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8 starting]
   4.0s  operator  Await cache-1                  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8 starting]  no arguments → -t8
   6.0s  kubelet   starts 1.6.38 -t8 for cache-1  cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]
   6.0s  agent     cache-1 tells how it started   cache-0 [1.6.38 -t8]                  cache-1 [1.6.38→1.6.38 -t8]
   6.0s  operator  Confirm cache-1                cache-0 [1.6.38 -t8]                  cache-1 [1.6.38 -t8]                  no arguments → -t8
   6.0s  operator  is content                     cache-0 [1.6.38 -t8]                  cache-1 [1.6.38 -t8]
