// Package store opens the places where snapshots are kept: a folder of a file
// system, or a bucket of Amazon S3 or of a server that speaks its protocol.
//
// # What a write promises
//
// An object that Create wrote exists once Close returned nil, whole, and never in
// part: a folder gets a file of another name that is renamed, S3 makes an object
// of what was sent when all of it was. In a folder the file and the folders above
// it are flushed (fsync) before Close returns, so that it outlives a crash of the
// node as far as the volume keeps its own promises. S3 answers after it stored it.
// A writer that was killed leaves a file *.tmp beside its object, which List tells
// of, or parts of an upload, which a life-cycle rule of the bucket removes.
//
// # What fails, and how soon
//
// Open asks the store for a list of one object, so that a wrong name, credential
// or certificate is told before anything is read, and gives up after a minute. Later
// each request is made four times at most, with ten seconds for a connection and
// thirty for an answer; a connection on which nothing moves for a minute is given up.
// A server that starts anew within some seconds is not noticed. What will be the same
// the next time, such as a certificate that is not trusted, is not tried again.
//
// # Memory
//
// A writer to S3 holds no more than three parts of five MiB.
package store
