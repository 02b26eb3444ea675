// Package olmv1 tests the operator's life with OLM v1 on the local cluster, which
// runs it. Nothing else may use the cluster at the same time: the test removes the operator that
// is installed, and at the end OLM v1 deletes the CRD Memcached and all Memcacheds.
package olmv1
