// Package host has the tests of the operator that need the machine of the local cluster. They kill processes, add, stop and
// remove nodes, read the audit log, and build images and load them into the cluster's registry. Only the test of the quickstart
// runs on any cluster.
//
// The five minutes in which the operator may write nothing for an idle Memcached begin with the first test, so they cost
// no time of their own.
package host
