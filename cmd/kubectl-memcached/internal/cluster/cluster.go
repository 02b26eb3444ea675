// Package cluster is the only place of the plugin with a client: it reads and writes objects, and queries the agents in pods.
// It needs no rights beyond those of the user. Each request is bounded by --request-timeout.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

const (
	// agentTimeout bounds the query of an agent, which answers within milliseconds.
	agentTimeout = 5 * time.Second
	// agentQueries are sent at the same time.
	agentQueries = 16
)

// Pods reaches into pods.
type Pods interface {
	// AgentStatus returns what the agent of a pod answers.
	AgentStatus(ctx context.Context, namespace, pod string) (wire.Status, error)
	// Metrics returns the metrics of the agent of a pod.
	Metrics(ctx context.Context, namespace, pod string) (string, error)
	// Dial connects to a port of a pod.
	Dial(ctx context.Context, namespace, pod string, port int) (net.Conn, error)
	// Agent runs a command of the agent in a pod, and copies what it prints.
	Agent(ctx context.Context, namespace, pod string, out io.Writer, args ...string) error
	// Logs returns the last lines that a container of a pod, or the one before it, has logged.
	Logs(ctx context.Context, namespace, pod, container string, previous bool) ([]byte, error)
}

// Cluster is a cluster as the user sees it.
type Cluster struct {
	Client client.Client
	Pods   Pods
	Now    func() time.Time
	// Flags select it, and the namespace, in commands that are printed, such as "-n shop --context=test".
	Flags string
	// Progress shows how many pods were queried.
	Progress Progress
}

// kinds are those that the plugin uses. It names their resources itself, so it doesn't have to discover them.
var kinds = map[schema.GroupVersion][]string{
	v1beta1.GroupVersion:      {"Memcached", "MemcachedBackup", "MemcachedRestore", "MemcachedScheduledBackup"},
	corev1.SchemeGroupVersion: {"Event", "Pod", "Secret", "Service"},
	appsv1.SchemeGroupVersion: {"ReplicaSet"}, networkingv1.SchemeGroupVersion: {"NetworkPolicy"}, policyv1.SchemeGroupVersion: {"PodDisruptionBudget"},
}

// New returns the cluster of a configuration.
func New(config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme), networkingv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for version, names := range kinds {
		for _, kind := range names {
			mapper.Add(version.WithKind(kind), meta.RESTScopeNamespace)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, err
	}
	pods, err := newPods(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{Client: c, Pods: pods, Now: time.Now}, nil
}

// Memcacheds returns those of a namespace, or of all if it is empty, by namespace and name.
func (c *Cluster) Memcacheds(ctx context.Context, namespace string) ([]v1beta1.Memcached, error) {
	var list v1beta1.MemcachedList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Memcacheds: %w", err)
	}
	return list.Items, nil
}

// Backups returns the backups of a Memcached.
func (c *Cluster) Backups(ctx context.Context, key client.ObjectKey) ([]v1beta1.MemcachedBackup, error) {
	var list v1beta1.MemcachedBackupList
	if err := c.Client.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing MemcachedBackups: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(b v1beta1.MemcachedBackup) bool { return b.Spec.MemcachedRef.Name != key.Name }), nil
}

// Schedules returns the schedules that back up a Memcached.
func (c *Cluster) Schedules(ctx context.Context, key client.ObjectKey) ([]v1beta1.MemcachedScheduledBackup, error) {
	var list v1beta1.MemcachedScheduledBackupList
	if err := c.Client.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing MemcachedScheduledBackups: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(s v1beta1.MemcachedScheduledBackup) bool {
		return s.Spec.BackupTemplate.Spec.MemcachedRef.Name != key.Name
	}), nil
}

// Memcached returns one.
func (c *Cluster) Memcached(ctx context.Context, key client.ObjectKey) (*v1beta1.Memcached, error) {
	var m v1beta1.Memcached
	if err := c.Client.Get(ctx, key, &m); err != nil {
		return nil, fmt.Errorf("reading Memcached %s: %w", key.Name, err)
	}
	return &m, nil
}

// Observe reads what the screen of a Memcached shows. Only the Memcached itself is required: explain turns the error about
// another part into a sentence.
func (c *Cluster) Observe(ctx context.Context, key client.ObjectKey, explain func(error) string) (screen.Input, error) {
	m, err := c.Memcached(ctx, key)
	if err != nil {
		return screen.Input{}, err
	}
	in := screen.Input{Memcached: m, Flags: c.Flags, Now: c.Now()}
	if in.Backups, err = c.Backups(ctx, key); err != nil {
		in.Omitted = append(in.Omitted, "the last backup: "+explain(err))
	}
	agents, err := c.agents(ctx, m)
	if err != nil {
		in.Omitted = append(in.Omitted, "items, memory and hits: "+explain(err))
	}
	in.Agents = agents
	if err == nil { // or the user may not query them, or they don't answer
		in.Samples, _ = c.samples(ctx, m)
	}
	return in, nil
}

// agents queries the agents of all shards. It returns the answers, by pod, and the first error.
func (c *Cluster) agents(ctx context.Context, m *v1beta1.Memcached) (map[string]wire.Status, error) {
	var pods []string
	for _, s := range m.Status.Shards {
		if s.PodName != "" {
			pods = append(pods, s.PodName)
		}
	}
	answers := map[string]wire.Status{}
	err := c.eachPod(pods, func(pod string) (func(), error) {
		answer, err := c.AgentStatus(ctx, m.Namespace, pod)
		return func() { answers[pod] = answer }, err
	})
	return answers, err
}

// AgentStatus returns what the agent of a pod answers.
func (c *Cluster) AgentStatus(ctx context.Context, namespace, pod string) (status wire.Status, err error) {
	err = queryAgent(ctx, agentTimeout, namespace, pod, func(ctx context.Context) error {
		status, err = c.Pods.AgentStatus(ctx, namespace, pod)
		return err
	})
	return status, err
}

// Agent runs a command of the agent in a pod, and copies what it prints.
func (c *Cluster) Agent(ctx context.Context, timeout time.Duration, namespace, pod string, out io.Writer, args ...string) error {
	return queryAgent(ctx, timeout, namespace, pod, func(ctx context.Context) error { return c.Pods.Agent(ctx, namespace, pod, out, args...) })
}

// queryAgent bounds a query of an agent, and names its pod in the error.
func queryAgent(ctx context.Context, timeout time.Duration, namespace, pod string, query func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := query(bounded)
	var network net.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && errors.As(err, &network) && network.Timeout(): // as the error of a context is
		return fmt.Errorf("the agent in pod %s in namespace %s didn't answer within %s: check the pod, its node and the network", pod, namespace, timeout)
	}
	return fmt.Errorf("querying the agent in pod %s in namespace %s: %w", pod, namespace, err)
}

// eachPod queries pods at the same time, and keeps one answer after the other. It returns the first error. If the user may not query
// the first pod, it doesn't try the others.
func (c *Cluster) eachPod(pods []string, query func(pod string) (keep func(), err error)) (first error) {
	var (
		lock  sync.Mutex
		wait  sync.WaitGroup
		slots = make(chan struct{}, agentQueries)
	)
	c.Progress.add(0, len(pods))
	ask := func(pod string) error {
		defer c.Progress.add(1, 0)
		keep, err := query(pod)
		lock.Lock()
		defer lock.Unlock()
		if err == nil {
			keep()
		} else if first == nil {
			first = err
		}
		return err
	}
	for i, pod := range pods {
		if i == 0 {
			if apierrors.IsForbidden(ask(pod)) {
				c.Progress.add(len(pods)-1, 0)
				break
			}
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			_ = ask(pod) // it keeps the first error
		})
	}
	wait.Wait()
	return first
}

// Progress counts queried pods on a line that it erases when all were queried. Agents that don't answer take a while.
type Progress struct {
	Out io.Writer

	lock      sync.Mutex
	done, all int
}

func (p *Progress) add(done, all int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.done, p.all = p.done+done, p.all+all; p.done < p.all {
		fmt.Fprintf(p.Out, "\rQueried %d of %d pods", p.done, p.all)
		return
	}
	p.done, p.all = 0, 0
	fmt.Fprint(p.Out, "\r\x1b[K")
}
