# An image that cannot be pulled is found out beside the shards: none is touched. Mended, it is
# proven anew and the update goes on by itself.

shards 3 at 1.6.38
image 1.6.99 cannot be pulled
spec 1.6.99
run
----
   0.0s  person    asks for 1.6.99                 cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]
   0.0s  operator  Prove cache-0                   cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]  proving image 1.6.99
   3.0s  proof     refuses image 1.6.99            cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator  needs a person: ImageNotProven  cache-0 [1.6.38]  cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.99 cannot be pulled

image 1.6.99 is mended
run until Change cache-0
----
   3.0s  person    mends image 1.6.99              cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
   3.0s  operator  needs a person: ImageNotProven  cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  image 1.6.99 cannot be pulled
 303.0s  clock     the proof is made anew          cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
 303.0s  operator  Prove cache-0                   cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]  proving image 1.6.99
 306.0s  proof     proves image 1.6.99             cache-0 [1.6.38]                   cache-1 [1.6.38]  cache-2 [1.6.38]
 306.0s  operator  Announce cache-0                cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.99
 306.3s  agent     cache-0 reads of its stop       cache-0 [1.6.38 announced]         cache-1 [1.6.38]  cache-2 [1.6.38]
 306.3s  operator  Change cache-0                  cache-0 [1.6.38→1.6.99 announced]  cache-1 [1.6.38]  cache-2 [1.6.38]  1.6.38 → 1.6.99
