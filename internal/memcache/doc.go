// Package memcache speaks the small part of memcached's text protocol that the
// agent, snapshots and the tests need: version, stats, get, set, the meta commands
// mg, ms and md, and the dump of all keys. Source: doc/protocol.txt of memcached.
//
// # Rules
//
// Parsers know no network. Each is a function over a *bufio.Reader that reads
// one whole answer, so it can be fuzzed and fed with recorded answers.
//
// Nothing that a server sends is believed without a bound: a line holds at
// most MaxLine bytes, a stats answer at most MaxStats lines, a value at most
// what the caller allows, and memory is taken as bytes arrive, never on a
// server's word about what is to come. Beyond a bound the error is ErrTooLong.
//
// A miss is no error: it is a nil item, or the code EN. A refusal is one of the
// typed errors *ClientError, *ServerError and ErrUnknownCommand. An answer that
// fits nothing is ErrMalformed.
//
// After any error a connection is closed, since it is not known where the next
// answer would begin: 1.6.45 follows one of its errors with an empty line, and
// an error about a value may leave the value to be swallowed. The exceptions
// are the refusals of a store, which are answers: ErrNotStored, ErrExists,
// ErrNotFound.
//
// Snapshots send many requests before they read the first answer, over connections
// of their own: for them requests are appended to a caller's memory, and answers
// are read in two parts, the head and the value, so that an item costs no memory
// beyond the caller's, and a value that is larger than that can pass through. There
// a refused store is an answer, too: memcached swallows the value and goes on with
// the next request.
//
// A Conn serves one caller at a time. Its calls end with their context.
package memcache
