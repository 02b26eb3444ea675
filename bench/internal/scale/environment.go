package scale

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// Build builds the operator from this checkout with the flags of its image, and returns the path.
func Build(ctx context.Context, dir string) (string, error) {
	root, err := cluster.Root()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "manager")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program, ".")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the operator: %w: %s", err, out)
	}
	return program, nil
}

// environmentOf returns the environment variables of the operator's Deployment as name=value, with references to the pod's
// namespace and the memory limit resolved.
func environmentOf(d *appsv1.Deployment) ([]string, error) {
	var all []string
	container := d.Spec.Template.Spec.Containers[0]
	for _, e := range container.Env {
		value := e.Value
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
			value = d.Namespace
		case from.ResourceFieldRef != nil && from.ResourceFieldRef.Resource == "limits.memory":
			value = strconv.FormatInt(container.Resources.Limits.Memory().Value(), 10)
		default:
			return nil, fmt.Errorf("the operator's Deployment has %s by a reference that is not supported here", e.Name)
		}
		all = append(all, e.Name+"="+value)
	}
	return all, nil
}
