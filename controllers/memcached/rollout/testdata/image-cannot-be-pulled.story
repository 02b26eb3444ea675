# A preflight check finds an image that cannot be pulled, and no shard is changed. Once the image is
# fixed, it is checked again and the update continues by itself.

shards 3 at 1.6.38
image 1.6.99 cannot be pulled
spec 1.6.99
run
----
   0.0s  user       requests 1.6.99                          cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator   Preflight cache-0                        cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.99
   3.0s  preflight  image 1.6.99 fails                       cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator   requires intervention: ImageNotVerified  cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.99 cannot be pulled

image 1.6.99 is fixed
run until UpdateInPlace cache-0
----
   3.0s  user       fixes image 1.6.99                       cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator   requires intervention: ImageNotVerified  cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.99 cannot be pulled
 303.0s  clock      the preflight check is due again         cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
 303.0s  operator   Preflight cache-0                        cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  checking image 1.6.99
 306.0s  preflight  image 1.6.99 passes                      cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
 306.0s  operator   AnnounceStop cache-0                     cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.99
 306.3s  agent      cache-0 reads the announced stop         cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
 306.3s  operator   UpdateInPlace cache-0                    cache-0 [1.6.38→1.6.99 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.99
