// Package hostile tests the operator on platforms that interfere with pods: policies that reject or change them, quotas,
// limit ranges, injected sidecars, resolvers without search domains. No test here needs anything that Kubernetes doesn't
// contain; policies are ValidatingAdmissionPolicies and MutatingAdmissionPolicies (Kubernetes 1.36), bound to the namespace of a walk.
//
// A walk is the life of one cache, from its creation to the bootstrap from its final backup. Conditions are drawn at
// random, several for each walk, and the name of the subtest repeats it:
//
//	make test-hostile ARGS=-conditions=quota+sidecar-first
package hostile
