package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/podresult"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// ScaleInDelay is how long a shard stays after it was removed from the list: clients with auto
// discovery read the list every minute, and the pods get it within seconds.
const ScaleInDelay = 90 * time.Second

// ShardList is the list of the shards: of a version, as host|ip|port by ordinal.
type ShardList struct {
	Version int64
	Servers []string
}

// String returns the list as clients read it.
func (l ShardList) String() string {
	if l.Version == 0 {
		return ""
	}
	return fmt.Sprintf("%d\n%s\n", l.Version, strings.Join(l.Servers, " "))
}

// ParseShardList returns an empty list for a text that is none.
func ParseShardList(text string) ShardList {
	version, servers, _ := strings.Cut(text, "\n")
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return ShardList{}
	}
	return ShardList{n, strings.Fields(servers)}
}

// planDiscovery decides which shards clients know, and gives the list to the pods.
func planDiscovery(obs *observation.Observation, shards []shard.State, options resources.Options) Discovery {
	m := obs.Memcached
	if m.Spec.Paused {
		return Discovery{list: PublishedList(obs).String()}
	}
	p := Discovery{}
	if m.Spec.Access.Discovery.IsEnabled() {
		last, was := PublishedList(obs), m.Status.Discovery
		list := ShardList{last.Version, serversToList(obs, shards, last.Servers, options)}
		if !slices.Equal(list.Servers, last.Servers) {
			// Clients ignore a version that isn't higher. The time keeps it growing when a
			// Memcached is created again.
			list.Version = max(last.Version+1, obs.Now.Unix())
			if was != nil {
				list.Version = max(list.Version, was.Version+1)
			}
		}
		p.list = list.String()
		p.Status = &v1beta1.DiscoveryStatus{Endpoint: options.Server(m.Namespace, resources.DiscoveryName(m.Name)), Version: list.Version,
			Size: int32(len(list.Servers)), LastChangeTime: metav1.NewTime(obs.Now.Truncate(time.Second))} //nolint:gosec // at most 128
		if was != nil && was.Version == list.Version {
			p.Status.LastChangeTime = was.LastChangeTime
		}
		p.Delay = max(ScaleInDelay-serverclock.Age(obs.Now, p.Status.LastChangeTime.Time), 0)
	}
	pods := podsOfShards(obs)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	for _, pod := range pods {
		if pod.Annotations[annotations.Discovery] == p.list {
			continue
		}
		p.Actions.Patch = append(p.Actions.Patch, Annotate(pod, annotations.Discovery, orNil(p.list)))
	}
	return p
}

// PublishedList returns the newest list of those that pods and templates have.
func PublishedList(obs *observation.Observation) (newest ShardList) {
	add := func(from map[string]string) {
		if l := ParseShardList(from[annotations.Discovery]); l.Version > newest.Version {
			newest = l
		}
	}
	for _, pod := range podsOfShards(obs) {
		add(pod.Annotations)
	}
	for i := range obs.Shards { // there may be no pods
		add(obs.Shards[i].Set.Spec.Template.Annotations)
	}
	return newest
}

// podsOfShards returns the pods of all shards that aren't being deleted, also of those beyond the
// size, in any order.
func podsOfShards(obs *observation.Observation) (all []*corev1.Pod) {
	for _, pods := range obs.Pods {
		for _, pod := range pods {
			if pod.DeletionTimestamp == nil && !podresult.IsFinished(pod) {
				all = append(all, pod)
			}
		}
	}
	return all
}

// serversToList returns the shards that clients should know, always the first ones: a client may
// choose the shard of a key by its place in the list. A shard is added when it is ready, and stays
// while another pod replaces its own. The first list has all shards, since no client has keys on a
// part of them. A shard that leaves is removed also while the address of another one is missing: it is deleted some time afterwards.
func serversToList(obs *observation.Observation, shards []shard.State, listed []string, options resources.Options) (servers []string) {
	for ordinal, name := range obs.Listed() {
		if ordinal >= len(listed) && len(listed) > 0 && !isReady(shards, name) {
			break
		}
		ip := clusterIP(obs, name)
		if ip == "" { // its Service was just created, or created again
			return listed[:min(len(listed), len(obs.Listed()))]
		}
		servers = append(servers, fmt.Sprintf("%s|%s|%d", options.Host(obs.Memcached.Namespace, name), ip, agentwire.MemcachedPort))
	}
	return servers
}

// clusterIP returns the address of a shard's Service, an IPv4 address if it has one: some clients
// know no others. It is empty if there is none.
func clusterIP(obs *observation.Observation, name string) (ip string) {
	o := obs.Objects[resources.Key{Kind: resources.KindService, Name: name}]
	service, ok := o.APIObject.(*corev1.Service)
	if !ok || o.Owner != observation.Ours || service.DeletionTimestamp != nil {
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

// Discovery is what clients with auto discovery read.
type Discovery struct {
	// Status to report; nil without spec.access.discovery.
	Status *v1beta1.DiscoveryStatus
	// list as pods have it; empty without one.
	list string
	// Delay is how long shards beyond the size stay.
	Delay   time.Duration
	Actions Actions
}
