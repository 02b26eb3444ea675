// Snapshot copies the items of a Memcached into a store, back from there, or
// deletes such a copy. It is what the operator's Jobs run, and it tells them what
// became of it; inspect is for people.
package main
