package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring/evidence"
)

// Sample returns a sample of the keys of each shard, by ordinal, and the first error.
func (c *Cluster) Sample(ctx context.Context, m *v1beta1.Memcached) (keys [][][]byte, err error) {
	keys = make([][][]byte, len(m.Status.Shards))
	var pods []string
	ordinals := map[string]int{}
	for ordinal, s := range m.Status.Shards {
		if s.PodName != "" {
			pods, ordinals[s.PodName] = append(pods, s.PodName), ordinal
		}
	}
	return keys, c.eachPod(pods, func(pod string) (func(), error) {
		var out bytes.Buffer
		err := c.Agent(ctx, 2*agentTimeout, m.Namespace, pod, &out, "sample")
		if err != nil && strings.Contains(err.Error(), "agent install") {
			err = fmt.Errorf("the agent in pod %s is of a release before 1.1.0, and has no sample of the keys: update the operator, and wait until it has updated the shards", pod)
		}
		if err != nil {
			return nil, err
		}
		of, err := decode(out.String())
		return func() { keys[ordinals[pod]] = of }, err
	})
}

func decode(lines string) (keys [][]byte, err error) {
	for line := range strings.Lines(lines) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("reading the keys that the agent has sampled: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Spellings returns how clients may name the servers. Explain turns the error about a part that can't be read into a sentence.
func (c *Cluster) Spellings(ctx context.Context, m *v1beta1.Memcached, explain func(error) string) (all []evidence.Spelling, omitted []string) {
	all = evidence.Spellings(m.Name, m.Namespace, m.Status.Servers)
	if h := m.Spec.Access.Hashing; h != nil && h.ServerNameTemplate != "" {
		all = append(all, evidence.Spelling{Name: h.ServerNameTemplate, Template: h.ServerNameTemplate, Servers: v1beta1.HashedServers(m)})
	}
	if e := m.Status.External; e != nil {
		all = append(all, evidence.Spelling{Name: "status.external.servers", Servers: e.Servers})
	}
	selector := []client.ListOption{client.InNamespace(m.Namespace), client.MatchingLabels{v1beta1.LabelInstance: m.Name}}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, selector...); err != nil {
		omitted = append(omitted, "the addresses of the pods: "+explain(fmt.Errorf("listing pods: %w", err)))
	}
	ofPods := map[string]string{}
	for _, p := range pods.Items {
		ofPods[p.Name] = p.Status.PodIP
	}
	var services corev1.ServiceList
	if err := c.Client.List(ctx, &services, selector...); err != nil {
		omitted = append(omitted, "the addresses of the Services: "+explain(fmt.Errorf("listing Services: %w", err)))
	}
	ofServices := map[string]string{}
	for _, s := range services.Items {
		ofServices[s.Name] = s.Spec.ClusterIP
	}
	pod, service := evidence.Spelling{Name: "addresses of the pods"}, evidence.Spelling{Name: "addresses of the Services"}
	for _, s := range m.Status.Shards {
		pod.Servers = appendAddress(pod.Servers, ofPods[s.PodName])
		service.Servers = appendAddress(service.Servers, ofServices[s.Name])
	}
	return append(all, pod, service), omitted
}

// appendAddress appends a server, if its address is known.
func appendAddress(servers []string, ip string) []string {
	if net.ParseIP(ip) == nil {
		return servers
	}
	return append(servers, net.JoinHostPort(ip, strconv.Itoa(wire.MemcachedPort)))
}
