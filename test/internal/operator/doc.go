// Package operator runs the operator's program on this machine for one namespace,
// with the rights that it has in the cluster, and kills it right after a write.
//
// The program reaches the API server through a proxy. When it is killed, the API
// server has answered the write and the program does not know it yet: what was
// written is that write and those before. Then it is started anew, as its Deployment
// would have it.
//
// Writes are told apart by what they are and not by their number, since how often
// the status is written on the way depends on what is seen in between. Events are
// none: nothing is decided by them.
package operator
