// Package e2e tests the operator on any cluster: real nodes, real memcached. It runs in a pod of the cluster, in the image
// of its Dockerfile, where it reaches Services, pods and names (make test-pod).
//
// Tests that take something from all others (the operator, the idle machine that a measurement of time needs) run one
// after the other. The others run in parallel after them. Each test has a namespace of its own in which only pods of the
// restricted Pod Security level are admitted.
package e2e
