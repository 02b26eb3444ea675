package cluster

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/host"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/process"
)

// Kubectl runs the kubectl of the running cluster as its administrator.
func Kubectl(d cache.Dirs, stdin string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(d.Programs(), "kubernetes", "kubectl"), append([]string{"--kubeconfig=" + d.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	return host.Output(cmd)
}

// Apply applies a file, a folder of them, or "-", which is the given text. It retries for as long as a new CRD takes
// to be served.
func Apply(d cache.Dirs, file, text string) error {
	return host.WaitFor(func() error {
		_, err := Kubectl(d, text, "apply", "--server-side", "--force-conflicts", "--field-manager=cluster", "-f", file)
		return err
	})
}

// storageClass makes kube-controller-manager create folders as volumes for claims, and delete them with the claims.
const storageClass = `{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
	"metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
	"provisioner": "kubernetes.io/host-path", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}`

// waitReady waits for the API server.
func waitReady(d cache.Dirs) error {
	return host.WaitFor(func() error {
		if err := process.CheckAlive(d, network.First.Name); err != nil {
			return err
		}
		connection, err := net.DialTimeout("tcp", network.APIAddress(), time.Second) // costs less than kubectl
		if err != nil {
			return err
		}
		_ = connection.Close()
		_, err = Kubectl(d, "", "get", "--raw=/readyz", "--request-timeout=5s")
		return err
	})
}

// waitNode waits until a node that was started at since is ready. Reports of its kubelet from before don't count: the
// condition of a node that comes back is still true.
func waitNode(d cache.Dirs, name string, since time.Time) error {
	const condition = `-o=jsonpath={range .status.conditions[?(@.type=="Ready")]}{.lastHeartbeatTime} {.status} {.message}{end}`
	return host.WaitFor(func() error {
		if err := process.CheckAlive(d, name); err != nil {
			return err
		}
		content, err := Kubectl(d, "", "get", "node", name, condition)
		if err != nil {
			return err
		}
		reported, state, _ := strings.Cut(content, " ")
		if at, err := time.Parse(time.RFC3339, reported); err != nil || at.Before(since.Truncate(time.Second)) {
			return fmt.Errorf("%s is not ready: kubelet has not reported yet", name)
		}
		if !strings.HasPrefix(state, "True ") {
			return fmt.Errorf("%s is not ready: %s", name, state)
		}
		return nil
	})
}

// waitAdmission waits until pods are admitted, which needs the service account of their namespace.
func waitAdmission(d cache.Dirs) error {
	return host.WaitFor(func() error {
		_, err := Kubectl(d, "", "--namespace=default", "get", "serviceaccount", "default")
		return err
	})
}

// Push pushes what the cluster's registry lacks of an image, with the path and tag of ref. Nodes pull from there, whatever registry
// ref names.
func Push(ref string, img v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	if err := crane.Push(img, network.RegistryAddress()+"/"+tag.RepositoryStr()+":"+tag.TagStr(), crane.Insecure); err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	return nil
}

// PushLayout pushes all images of an OCI layout to the cluster's registry.
func PushLayout(dir string) error {
	index, manifests, err := image.ReadLayout(dir)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		if err := Push(m.Annotations[image.RefAnnotation], img); err != nil {
			return err
		}
	}
	return nil
}
