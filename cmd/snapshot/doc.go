// Snapshot copies the items of a Memcached into a store and back, and deletes such
// snapshots. The operator's Jobs run it and read its outcome; inspect is for users.
package main
