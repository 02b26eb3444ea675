// Package memcache speaks the small part of memcached's text protocol that the
// agent and the tests need: version, stats, get, set, and the meta commands mg
// and ms. Source: doc/protocol.txt of memcached.
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
// A Conn serves one caller at a time. Its calls end with their context.
package memcache
