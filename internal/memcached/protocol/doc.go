// Package protocol implements the part of memcached's text protocol that the agent and
// snapshots need: version, stats, the meta commands mg, ms and md, and the dump of all
// keys. Source: doc/protocol.txt of memcached.
//
// # Rules
//
// Parsers know no network. Each reads one complete answer from a *bufio.Reader, so
// that it can be fuzzed and tested with recorded answers.
//
// What a server sends is limited: a line to MaxLine bytes, a stats answer to MaxStats
// lines, a value to MaxValue bytes. Memory grows with the bytes that arrive, not with
// what the server announces. Beyond a limit the error is ErrTooLong.
//
// A miss is not an error but the code EN. An error that memcached answers is a
// *ClientError, a *ServerError or ErrUnknownCommand. Any other unexpected answer is
// ErrMalformed.
//
// After an error the connection must be closed, because the start of the next answer is
// unknown: 1.6.45 sends an empty line after one of its errors, and after an error about
// a value the value may follow. The exception is a *ServerError in the answer to ms,
// after which memcached discards the value and continues with the next request.
//
// Snapshots send many requests before they read the first answer. For them, requests
// are appended to a caller's memory, and the head of an answer is read separately from
// its value, so that an item costs no allocation and a value may be larger than memory.
//
// A Conn, in contrast, sends one request at a time for one caller, until the context of
// the call is done.
package protocol
