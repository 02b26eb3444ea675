// Package e2e tests the operator on the cluster that KUBECONFIG names: real
// nodes, real memcached. It reaches Services and pods from this machine.
//
// Tests that take something from all others (the operator, a node, the quiet
// that a measurement of time needs) run one after the other; the rest runs beside
// each other after them. Each test has a namespace of its own in which only pods
// of the restricted Pod Security level are admitted. The five minutes in which
// nothing may be written to an idle Memcached begin with the first test and
// end beside the last, so they cost no time of their own.
package e2e
