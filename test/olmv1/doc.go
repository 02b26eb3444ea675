// Package olmv1 tests the operator's life with OLM v1 on the local cluster, which
// runs it. Meanwhile nothing else may use the cluster: the test takes the operator
// away that others use, and at the end OLM v1 deletes the kind Memcached with all
// that there are.
package olmv1
