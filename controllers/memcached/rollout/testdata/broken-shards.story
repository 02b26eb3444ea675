# The spec was wrong from the start, and no shard serves. A corrected spec reaches all shards, one
# after the other, once its image has passed the checks: a shard may also recover by itself.

shards 2 at 1.6.38
image 1.6.38 cannot be pulled
crash cache-0
crash cache-1
run
----
   0.0s  kernel    kills memcached of cache-0       cache-0 [1.6.38 broken]  cache-1 [1.6.38]
   0.0s  kernel    kills memcached of cache-1       cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]
   0.0s  operator  all up to date                   cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]
  10.0s  kubelet   starts 1.6.38 for cache-0 again  cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]
  20.0s  kubelet   starts 1.6.38 for cache-1 again  cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]

image 1.6.99 cannot be pulled
spec 1.6.99
run
----
  20.0s  user       requests 1.6.99                          cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]
  20.0s  operator   Preflight cache-0                        cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]  checking image 1.6.99
  23.0s  preflight  image 1.6.99 fails                       cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]
  23.0s  operator   requires intervention: ImageNotVerified  cache-0 [1.6.38 broken]  cache-1 [1.6.38 broken]  image 1.6.99 cannot be pulled

spec 1.6.45
run
----
  23.0s  user        requests 1.6.45                    cache-0 [1.6.38 broken]               cache-1 [1.6.38 broken]
  23.0s  operator    Preflight cache-0                  cache-0 [1.6.38 broken]               cache-1 [1.6.38 broken]                           checking image 1.6.45
  26.0s  preflight   image 1.6.45 passes                cache-0 [1.6.38 broken]               cache-1 [1.6.38 broken]
  26.0s  operator    Recreate cache-0                   cache-0 [1.6.38 broken, next 1.6.45]  cache-1 [1.6.38 broken]                           1.6.38 → 1.6.45
  27.0s  kubelet     removes the pod 1.6.38 of cache-0  cache-0 [1.6.45 no pod]               cache-1 [1.6.38 broken]
  27.0s  operator    Recreate cache-1                   cache-0 [1.6.45 no pod]               cache-1 [1.6.38 broken, next 1.6.45]              1.6.38 → 1.6.45
  27.0s  ReplicaSet  creates a pod for cache-0          cache-0 [1.6.45 starting]             cache-1 [1.6.38 broken, next 1.6.45]
  29.0s  kubelet     starts 1.6.45 for cache-0          cache-0 [1.6.45 empty]                cache-1 [1.6.38 broken terminating, next 1.6.45]
  29.0s  operator    Await cache-1                      cache-0 [1.6.45 empty]                cache-1 [1.6.38 broken terminating, next 1.6.45]  1.6.38 → 1.6.45
  29.0s  agent       cache-0 reports its start          cache-0 [1.6.45 empty]                cache-1 [1.6.38 broken terminating, next 1.6.45]
  30.0s  kubelet     removes the pod 1.6.38 of cache-1  cache-0 [1.6.45 empty]                cache-1 [1.6.45 no pod]
  30.0s  operator    all up to date                     cache-0 [1.6.45 empty]                cache-1 [1.6.45 no pod]
  30.0s  ReplicaSet  creates a pod for cache-1          cache-0 [1.6.45 empty]                cache-1 [1.6.45 starting]
  32.0s  kubelet     starts 1.6.45 for cache-1          cache-0 [1.6.45 empty]                cache-1 [1.6.45 empty]
  32.0s  agent       cache-1 reports its start          cache-0 [1.6.45 empty]                cache-1 [1.6.45 empty]
