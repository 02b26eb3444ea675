package memcached

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// scaleInDelay is how long a shard stays after it was removed from the list: clients with auto
// discovery read the list every minute, and the pods get it within seconds.
const scaleInDelay = 90 * time.Second

// shardList is the list of the shards: of a version, as host|ip|port by ordinal.
type shardList struct {
	version int64
	servers []string
}

// String returns the list as clients read it.
func (l shardList) String() string {
	if l.version == 0 {
		return ""
	}
	return fmt.Sprintf("%d\n%s\n", l.version, strings.Join(l.servers, " "))
}

// parseShardList returns an empty list for a text that is none.
func parseShardList(text string) shardList {
	version, servers, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return shardList{}
	}
	return shardList{n, strings.Fields(servers)}
}

// planDiscovery decides which shards clients know, and gives the list to the pods. patched are the pods that
// another planner patches: a second patch of the same pod would be rejected.
func planDiscovery(obs *observation, shards []shard.State, patched []podPatch) discoveryPlan {
	m := obs.memcached
	p, tooLarge := discoveryPlan{}, ""
	if m.Spec.Discovery.Enabled {
		last, was := publishedList(obs), m.Status.Discovery
		list := shardList{last.version, serversToList(obs, shards, last.servers)}
		if !slices.Equal(list.servers, last.servers) {
			// Clients ignore a version that isn't higher. The time keeps it growing when a
			// Memcached is created again.
			list.version = max(last.version+1, obs.now.Unix())
			if was != nil {
				list.version = max(list.version, was.Version+1)
			}
		}
		if p.list = list.String(); len(p.list) > resources.MaxDiscoveryList {
			tooLarge = fmt.Sprintf("the list of %d shards has %d bytes, more than %d, so clients keep the last one; use status.servers, or shorter names",
				len(list.servers), len(p.list), resources.MaxDiscoveryList)
			list, p.list = last, last.String()
		}
		p.status = &v1alpha1.DiscoveryStatus{Endpoint: resources.DiscoveryEndpoint(m.Namespace, m.Name), Version: list.version,
			Size: int32(len(list.servers)), ChangedAt: metav1.NewTime(obs.now.Truncate(time.Second))} //nolint:gosec // at most 1000
		if was != nil && was.Version == list.version {
			p.status.ChangedAt = was.ChangedAt
		}
		p.delay = max(scaleInDelay-obs.now.Sub(p.status.ChangedAt.Time).Abs(), 0)
	}
	var without []string
	pods := podsOfShards(obs)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		if !resources.ServesDiscovery(pod) {
			without = append(without, pod.Name)
		}
		if pod.Annotations[annotations.Discovery] == p.list || slices.ContainsFunc(patched, func(other podPatch) bool { return other.pod.UID == pod.UID }) {
			continue
		}
		if len(p.actions.Patch) == batchSize {
			p.actions.Postponed = append(p.actions.Postponed, resources.Key{Kind: resources.KindPod, Name: pod.Name})
			continue
		}
		var value any
		if p.list != "" {
			value = p.list
		}
		p.actions.Patch = append(p.actions.Patch, annotate(pod, annotations.Discovery, value))
	}
	switch {
	case p.status == nil:
	case tooLarge != "":
		p.status.Message = tooLarge
	case len(without) > 0:
		p.status.Message = fmt.Sprintf("%d pods were created by operator 1.0 and don't serve the endpoint, such as %s; replace them: kubectl annotate pod %s %s=1",
			len(without), without[0], without[0], v1alpha1.AnnotationMove)
	}
	return p
}

// publishedList returns the newest list of those that pods and templates have.
func publishedList(obs *observation) (newest shardList) {
	add := func(from map[string]string) {
		if l := parseShardList(from[annotations.Discovery]); l.version > newest.version {
			newest = l
		}
	}
	for _, pod := range podsOfShards(obs) {
		add(pod.Annotations)
	}
	for i := range obs.shards { // there may be no pods
		add(obs.shards[i].Set.Spec.Template.Annotations)
	}
	return newest
}

// podsOfShards returns the pods of all shards that aren't being deleted, also of those beyond the
// size, in any order.
func podsOfShards(obs *observation) (all []*corev1.Pod) {
	for _, pods := range obs.pods {
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil && !shard.IsFinished(pod) {
				all = append(all, pod)
			}
		}
	}
	return all
}

// serversToList returns the shards that clients should know, always the first ones: a client may
// choose the shard of a key by its place in the list. A shard is added when it is ready, and stays
// while another pod replaces its own. The first list has all shards, since no client has keys on a
// part of them.
func serversToList(obs *observation, shards []shard.State, listed []string) (servers []string) {
	for ordinal, name := range obs.names {
		state := shard.Named(shards, name)
		if ordinal >= len(listed) && len(listed) > 0 && (state == nil || !state.IsReady) {
			break
		}
		ip := clusterIP(obs, name)
		if ip == "" { // its Service was just created, or created again
			return listed
		}
		host, _, _ := strings.Cut(resources.Server(obs.memcached.Namespace, name), ":")
		servers = append(servers, fmt.Sprintf("%s|%s|%d", host, ip, agentwire.MemcachedPort))
	}
	return servers
}

// clusterIP returns the address of a shard's Service, an IPv4 address if it has one: some clients
// know no others. It is empty if there is none.
func clusterIP(obs *observation, name string) (ip string) {
	o := obs.objects[resources.Key{Kind: resources.KindService, Name: name}]
	service, ok := o.APIObject.(*corev1.Service)
	if !ok || o.owner != ours || service.DeletionTimestamp != nil {
		return ""
	}
	for _, candidate := range service.Spec.ClusterIPs {
		parsed, err := netip.ParseAddr(candidate)
		if err == nil && (ip == "" || parsed.Is4()) {
			ip = candidate
		}
	}
	return ip
}

// discoveryPlan is what clients with auto discovery read.
type discoveryPlan struct {
	// status to report; nil without spec.discovery.
	status *v1alpha1.DiscoveryStatus
	// list as pods have it; empty without one.
	list string
	// delay is how long shards beyond the size stay.
	delay   time.Duration
	actions Actions
}
