package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// MaxFile bounds a file of a report.
const MaxFile = 1 << 20

// pageObjects is how many objects an answer of the API server has at most.
const pageObjects = 2000

// OwnedObjects returns the objects of a kind that the operator has created for a Memcached.
func (c *Cluster) OwnedObjects(ctx context.Context, m *v1beta1.Memcached, list client.ObjectList) ([]runtime.Object, error) {
	return c.objects(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{v1beta1.LabelInstance: m.Name, v1beta1.LabelManagedBy: v1beta1.ManagedByValue})
}

// Events returns the events about a Memcached, its backups and restores, and its objects, whose names begin with its own.
func (c *Cluster) Events(ctx context.Context, m *v1beta1.Memcached) ([]runtime.Object, error) {
	all, err := c.objects(ctx, &corev1.EventList{}, client.InNamespace(m.Namespace))
	return slices.DeleteFunc(all, func(o runtime.Object) bool {
		e, ok := o.(*corev1.Event)
		return !ok || e.InvolvedObject.Name != m.Name && !strings.HasPrefix(e.InvolvedObject.Name, m.Name+"-")
	}), err
}

// Restores returns the restores into a Memcached.
func (c *Cluster) Restores(ctx context.Context, m *v1beta1.Memcached) ([]runtime.Object, error) {
	all, err := c.objects(ctx, &v1beta1.MemcachedRestoreList{}, client.InNamespace(m.Namespace))
	return slices.DeleteFunc(all, func(o runtime.Object) bool {
		r, ok := o.(*v1beta1.MemcachedRestore)
		return !ok || r.Spec.MemcachedRef.Name != m.Name
	}), err
}

// OperatorPods returns the pods of the operator.
func (c *Cluster) OperatorPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(annotations.OperatorPodLabels())); err != nil {
		return nil, fmt.Errorf("listing the operator's pods: %w", err)
	}
	return list.Items, nil
}

// HasRestarted reports whether a container has logs of the one before it.
func (c *Cluster) HasRestarted(ctx context.Context, key client.ObjectKey, container string) bool {
	var pod corev1.Pod
	if err := c.Client.Get(ctx, key, &pod); err != nil {
		return false // reading its log says why
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == container && s.RestartCount > 0 })
}

// objects returns all of a kind. A namespace can have many events of others.
func (c *Cluster) objects(ctx context.Context, list client.ObjectList, options ...client.ListOption) (all []runtime.Object, err error) {
	all = []runtime.Object{} // not null in the report
	for next := ""; ; {
		page := list.DeepCopyObject().(client.ObjectList)
		if err := c.Client.List(ctx, page, append(options, client.Limit(pageObjects), client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("listing objects: %w", err)
		}
		objects, err := meta.ExtractList(page)
		if all = append(all, objects...); err != nil || page.GetContinue() == "" {
			return all, err
		}
		next = page.GetContinue()
	}
}

// Logs returns the last lines that a container of a pod, or the one before it, has logged.
func (p *pods) Logs(ctx context.Context, namespace, pod, container string, previous bool) ([]byte, error) {
	httpClient, err := rest.HTTPClientFor(p.config)
	if err != nil {
		return nil, err
	}
	address := p.base.JoinPath("api", "v1", "namespaces", namespace, "pods", pod, "log")
	// A line of an agent has at most about 1 KB, and the end of the log counts.
	address.RawQuery = url.Values{"container": {container}, "previous": {strconv.FormatBool(previous)}, "tailLines": {"4000"}, "timestamps": {"false"}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading the log of pod %s: %w", pod, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		var status metav1.Status
		if json.Unmarshal(text, &status) == nil && status.Message != "" {
			return nil, fmt.Errorf("reading the log of pod %s: %w", pod, &apierrors.StatusError{ErrStatus: status})
		}
		return nil, fmt.Errorf("reading the log of pod %s: %s", pod, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 8*MaxFile))
}
