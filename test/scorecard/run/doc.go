// Run runs the scorecard's tests on the cluster that KUBECONFIG names as
// "operator-sdk scorecard" does, for whom operator-sdk is not at hand:
//
//	go run ./scorecard/run --bundle FOLDER --namespace NAME --image REFERENCE [--selector LABELS] [--wait-time DURATION]
//
// The bundle's tests/scorecard/config.yaml says which tests there are. Each is a pod
// under the ServiceAccount that the file names, with the bundle at /bundle, to which
// an init container unpacks it from a ConfigMap; its log is its result. Pods pass
// the Pod Security level restricted, as with operator-sdk's --pod-security=restricted.
//
// Other than operator-sdk it says what goes on meanwhile, tells of a test that ended
// or cannot begin without waiting for the others, and runs no test that asks for
// storage. Exit status 1 means that not all tests passed.
package main
