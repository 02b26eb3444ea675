// Package operator runs the operator's program beside the tests for one namespace, with the permissions that it has in the
// cluster, and kills it right after a write.
//
// The program connects to the API server through a proxy. When it is killed, the API server has answered the write, but
// the program has not received the answer. Then it restarts, as its Deployment would restart it.
//
// A write is identified by its name and not by its number, since the number of status writes depends on what the operator
// observes in between. Events do not count as writes: no decision depends on them.
package operator
