// Scorecard-memcached is the image of the scorecard's suite "memcached": tests of
// the operator on the cluster that it is installed on, for "operator-sdk
// scorecard" and "make scorecard". Its one argument names the test.
//
// A test's pod is read by its log, so this program prints one TestStatus of
// scorecard.operatorframework.io/v1alpha3 as one line of JSON and nothing else,
// whatever happens:
//
//	pass   the operator does what the test is about
//	fail   it does not; errors say what was seen, suggestions where to look
//	error  the test could not be done: no bundle, no permission, no time left, no
//	       default StorageClass for the volume of backup-restore
//
// The bundle is at /bundle and SCORECARD_NAMESPACE names the namespace to work in.
// There a test makes a Memcached of a name of its own, so that tests may run
// beside each other, and deletes it at the end, also after a failure or when it is
// ended from outside. It takes no longer than limit, see trial.go.
//
// As "tar xvzf ARCHIVE -C FOLDER" it unpacks the bundle, which is what the
// scorecard's init container is asked to do: one image is enough on a cluster
// without internet.
package main
