package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultImage is the variable of the default image of memcached, whose tag is the default version.
const defaultImage = "RELATED_IMAGE_MEMCACHED"

// Install applies config/default with an image of the operator and waits until the operator runs.
func (c *Cluster) Install(ctx context.Context, image string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	return c.InstallFrom(ctx, root, image)
}

// InstallFrom does what Install does with the sources of another release.
func (c *Cluster) InstallFrom(ctx context.Context, sources, image string) error {
	text, err := kustomize(ctx, filepath.Join(sources, "config/default"))
	if err != nil {
		return err
	}
	objects, err := Objects(bytes.NewReader(ReleasedImage.ReplaceAllLiteral(text, []byte(image))))
	if err != nil {
		return err
	}
	for _, o := range objects {
		// The API server rejects objects for a moment while the namespace is being deleted or the CRD is new.
		err := Eventually(ctx, fmt.Sprintf("applying %s %s", o.GetKind(), o.GetName()), func(ctx context.Context) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), owner, client.ForceOwnership)
		})
		if err != nil {
			return err
		}
	}
	return c.OperatorReady(ctx)
}

// Uninstall deletes the objects of Install except for the CRDs, as "make undeploy" does.
func (c *Cluster) Uninstall(ctx context.Context) error {
	objects, err := Render(ctx, "config/default")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "CustomResourceDefinition" {
			continue
		}
		if err := c.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return c.Gone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: OperatorNamespace}})
}

// OperatorImage returns the image of the installed operator, or "".
func (c *Cluster) OperatorImage(ctx context.Context) (string, error) {
	_, container, err := c.manager(ctx)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return container.Image, nil
}

// UseMemcached sets the operator's default image of memcached and waits until the operator runs with it.
func (c *Cluster) UseMemcached(ctx context.Context, image string) error {
	d, container, err := c.manager(ctx)
	if err != nil {
		return err
	}
	before := d.DeepCopy()
	memcached, err := defaultImageOf(container)
	if err != nil || memcached.Value == image {
		return err
	}
	memcached.Value = image
	if err := c.Patch(ctx, d, client.MergeFrom(before), owner); err != nil {
		return fmt.Errorf("setting %s: %w", defaultImage, err)
	}
	return c.OperatorReady(ctx)
}

// UseNewest sets the newest memcached of the local cluster as the operator's default. It does nothing on other clusters.
func (c *Cluster) UseNewest(ctx context.Context) error {
	if version := os.Getenv("MEMCACHED_NEWEST"); version != "" {
		return c.UseMemcached(ctx, "docker.io/library/memcached:"+version)
	}
	return nil
}

// DefaultVersion returns the operator's default version of memcached.
func (c *Cluster) DefaultVersion(ctx context.Context) (string, error) {
	_, container, err := c.manager(ctx)
	if err != nil {
		return "", err
	}
	memcached, err := defaultImageOf(container)
	if err != nil {
		return "", err
	}
	return memcached.Value[strings.LastIndex(memcached.Value, ":")+1:], nil
}

// defaultImageOf returns the variable of the default image, which can be changed in place.
func defaultImageOf(manager *corev1.Container) (*corev1.EnvVar, error) {
	i := slices.IndexFunc(manager.Env, func(e corev1.EnvVar) bool { return e.Name == defaultImage })
	if i < 0 {
		return nil, fmt.Errorf("the operator's Deployment has no %s", defaultImage)
	}
	return &manager.Env[i], nil
}

// OperatorReady waits until the latest Deployment of the operator runs and earlier pods no longer exist.
func (c *Cluster) OperatorReady(ctx context.Context) error {
	return Eventually(ctx, "the operator", func(ctx context.Context) error {
		d, _, err := c.manager(ctx)
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != *d.Spec.Replicas || s.AvailableReplicas != *d.Spec.Replicas || s.Replicas != *d.Spec.Replicas {
			return fmt.Errorf("%d of %d pods are available, %d updated", s.AvailableReplicas, *d.Spec.Replicas, s.UpdatedReplicas)
		}
		return nil
	})
}

// OperatorGone waits until the operator has stopped. It deletes the lease, for which the next one would wait: OLM and Helm take
// the right to release it away while the operator stops.
func (c *Cluster) OperatorGone(ctx context.Context) error {
	err := Eventually(ctx, "the end of the operator", func(ctx context.Context) error {
		pods, err := c.OperatorPods(ctx)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d pods of it are there", len(pods))
		}
		return err
	})
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: OperatorNamespace, Name: "memcached-operator.cache.memcached-operator.io"}}
	return errors.Join(err, client.IgnoreNotFound(c.Delete(ctx, lease)))
}

// OperatorPods returns the pods of the operator.
func (c *Cluster) OperatorPods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(OperatorNamespace), client.MatchingLabels{"control-plane": "controller-manager"})
	if err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	return pods.Items, nil
}

// manager returns the operator's Deployment and its container, which can be changed in place.
func (c *Cluster) manager(ctx context.Context) (*appsv1.Deployment, *corev1.Container, error) {
	d := &appsv1.Deployment{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorDeployment}, d); err != nil {
		return nil, nil, fmt.Errorf("reading the operator's Deployment: %w", err)
	}
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == operatorContainer })
	if i < 0 {
		return nil, nil, fmt.Errorf("the operator's Deployment has no container %s", operatorContainer)
	}
	return d, &containers[i], nil
}

// ReleasedImage is the operator's image as config/ names it.
var ReleasedImage = regexp.MustCompile(`ghcr\.io/memcached-operator/memcached-operator:v[^ \n]+`)

// Render returns the objects of a folder of config/ in the order of their creation.
func Render(ctx context.Context, dir string) ([]*unstructured.Unstructured, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	text, err := kustomize(ctx, filepath.Join(root, dir))
	if err != nil {
		return nil, err
	}
	return Objects(bytes.NewReader(text))
}

func kustomize(ctx context.Context, dir string) ([]byte, error) {
	text, err := exec.CommandContext(ctx, "kubectl", "kustomize", dir).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("kubectl kustomize %s: %w: %s", dir, err, exit.Stderr)
	}
	return text, err
}

// Objects reads a stream of YAML documents.
func Objects(from io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(from, 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(o)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML: %w", err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// Root returns the folder of the repository, above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "PROJECT")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no folder above the working directory has a file PROJECT: run this inside a checkout")
		}
		dir = parent
	}
}
