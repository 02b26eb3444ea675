package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

// namespaces are queried at the same time.
const namespaceQueries = 8

// FirstMemcacheds returns at most so many Memcacheds of a namespace, or of all if it is empty, and how many there are beside them.
func (c *Cluster) FirstMemcacheds(ctx context.Context, namespace string, most int) (first []v1beta1.Memcached, more int64, err error) {
	var list v1beta1.MemcachedList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.Limit(int64(most))); err != nil {
		return nil, 0, fmt.Errorf("listing Memcacheds: %w", err)
	}
	if list.RemainingItemCount != nil {
		more = *list.RemainingItemCount
	}
	return list.Items, more, nil
}

// Sizes reads what the screen of the memory of a Memcached shows.
func (c *Cluster) Sizes(ctx context.Context, key client.ObjectKey, explain func(error) string) (screen.Input, error) {
	m, err := c.Memcached(ctx, key)
	if err != nil {
		return screen.Input{}, err
	}
	in := screen.Input{Memcached: m, Flags: c.Flags, Now: c.Now()}
	if in.Samples, err = c.samples(ctx, m); err != nil {
		in.Omitted = append(in.Omitted, "metrics: "+explain(err))
	}
	return in, nil
}

// samples returns the metrics of the shards of a Memcached, by pod, and the first error.
func (c *Cluster) samples(ctx context.Context, m *v1beta1.Memcached) (map[string]screen.Sample, error) {
	var shards []screen.Place
	for _, s := range m.Status.Shards {
		if s.PodName != "" {
			shards = append(shards, screen.Place{Namespace: m.Namespace, Memcached: m.Name, Shard: s.Name, Pod: s.PodName})
		}
	}
	all, failed := c.Metrics(ctx, shards)
	byPod := map[string]screen.Sample{}
	for place, sample := range all {
		byPod[place.Pod] = sample
	}
	return byPod, errors.Join(failed...)
}

// Metrics returns the metrics of the agents of shards, by pod, and an error for each namespace that has one.
func (c *Cluster) Metrics(ctx context.Context, shards []screen.Place) (map[screen.Place]screen.Sample, []error) {
	var (
		lock    sync.Mutex
		wait    sync.WaitGroup
		failed  []error
		samples = map[screen.Place]screen.Sample{}
		slots   = make(chan struct{}, namespaceQueries)
		pods    = map[string][]string{}
		places  = map[string]screen.Place{}
	)
	for _, s := range shards {
		pods[s.Namespace] = append(pods[s.Namespace], s.Pod)
		places[s.Namespace+"/"+s.Pod] = s
	}
	for namespace, names := range pods {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			err := c.eachPod(names, func(pod string) (func(), error) {
				var text string
				err := queryAgent(ctx, agentTimeout, namespace, pod, func(ctx context.Context) (err error) {
					text, err = c.Pods.Metrics(ctx, namespace, pod)
					return err
				})
				if err != nil {
					return nil, err
				}
				sample := screen.NewSample(text, c.Now())
				return func() {
					lock.Lock()
					defer lock.Unlock()
					samples[places[namespace+"/"+pod]] = sample
				}, nil
			})
			if err != nil {
				lock.Lock()
				defer lock.Unlock()
				failed = append(failed, err)
			}
		})
	}
	wait.Wait()
	return samples, failed
}
