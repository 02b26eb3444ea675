// Package platform tells what kind of cluster the operator is in, where that
// matters to what it makes.
package platform

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsOpenShift says whether the cluster gives each pod its user by itself, so that
// a pod must not name one.
func IsOpenShift(mapper meta.RESTMapper) (bool, error) {
	_, err := mapper.RESTMapping(schema.GroupKind{Group: "security.openshift.io", Kind: "SecurityContextConstraints"})
	if err != nil && !meta.IsNoMatchError(err) {
		return false, fmt.Errorf("asking whether this is OpenShift: %w", err)
	}
	return err == nil, nil
}
