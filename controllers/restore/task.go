package restore

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/snapshotjob"
)

// defaultServerName is that of the API server's default.
const defaultServerName = "{shard}.{namespace}.svc:11211"

// sourceOf returns where the snapshot lies. The store of a backup that was deleted
// meanwhile is not known any more, and the Job has been told of it.
func sourceOf(seen *observed) (store v1alpha1.SnapshotStore, path string) {
	if s := seen.restore.Spec.Snapshot; s != nil {
		return s.Store, s.Path
	}
	if s := seen.restore.Status.Snapshot; s != nil {
		path = s.Path
	}
	if s := snapshotOf(seen); s != nil {
		path = s.Path
	}
	if seen.backup != nil {
		store = seen.backup.Spec.Store
	}
	return store, path
}

// snapshotOf returns what the backup's status tells of the snapshot, or nil.
func snapshotOf(seen *observed) *v1alpha1.SnapshotStatus {
	if seen.backup == nil || seen.backup.Status.Phase != v1alpha1.RunComplete {
		return nil
	}
	return seen.backup.Status.Snapshot
}

// bootstraps says whether the Memcached holds its shards back until this restore has
// filled them.
func bootstraps(seen *observed) bool {
	b := seen.memcached.Status.Bootstrap
	return b != nil && b.Restore == seen.restore.Name && b.Phase == v1alpha1.RunRunning
}

// runOf returns what the Job of a restore is made of.
func runOf(seen *observed) snapshotjob.Run {
	s, m := seen.restore, seen.memcached
	store, path := sourceOf(seen)
	items, bytes := snapshotjob.Limits(s.Spec.RateLimit)
	load := &snapshotapi.Load{Replace: s.Spec.ExistingItems == v1alpha1.ExistingReplace}
	if s.Spec.MaxAge != nil {
		load.MaxAge = s.Spec.MaxAge.Duration
	}
	if s.Spec.MaxTTL != nil {
		load.MaxTTL = s.Spec.MaxTTL.Duration
	}
	for _, shard := range s.Spec.Shards {
		load.Shards = append(load.Shards, int(shard))
	}
	if h := m.Spec.Hashing; h != nil {
		load.Ring, load.RingServers = string(h.Ring), ringServers(m)
	}
	servers := m.Status.Servers
	if bootstraps(seen) {
		servers = nil
		for ordinal := range int(*m.Spec.Size) {
			servers = append(servers, fmt.Sprintf("%s.%s.svc:%d", serviceName(s, ordinal), s.Namespace, agentapi.MemcachedPort))
		}
	}
	return snapshotjob.Run{
		Prefix: snapshotjob.Restore, Owner: s, Kind: kind,
		Store: store, Action: snapshotapi.ActionLoad, Deadline: s.Spec.Deadline, PullSecrets: m.Spec.ImagePullSecrets,
		Task: snapshotapi.Task{Path: path, Servers: servers, ItemsPerSecond: items, BytesPerSecond: bytes, Load: load},
	}
}

// ringServers returns the names by which the clients know the servers.
func ringServers(m *v1alpha1.Memcached) []string {
	template := m.Spec.Hashing.ServerName
	if template == "" {
		template = defaultServerName
	}
	var names []string
	for ordinal := range int(*m.Spec.Size) {
		names = append(names, strings.NewReplacer("{shard}", snapshotjob.Shard(m.Name, ordinal), "{namespace}", m.Namespace).Replace(template))
	}
	return names
}

// serviceName returns the name of the Service by which a restore reaches a shard.
func serviceName(s *v1alpha1.MemcachedRestore, ordinal int) string {
	return snapshotjob.Name(snapshotjob.Restore, s.UID) + "-" + strconv.Itoa(ordinal)
}

// servicesFor returns the Services by which a restore reaches shards that are not
// Ready. They select a shard's pod as its own Service does, and do not bear its
// labels.
func servicesFor(seen *observed) ([]corev1.Service, error) {
	if !bootstraps(seen) {
		return nil, nil
	}
	s, m := seen.restore, seen.memcached
	selector, err := labels.ConvertSelectorToLabelsMap(m.Status.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the Memcached's selector: %w", err)
	}
	var services []corev1.Service
	for ordinal := range int(*m.Spec.Size) {
		services = append(services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: serviceName(s, ordinal), Labels: snapshotjob.Labels(snapshotjob.Restore, s.UID),
				OwnerReferences: []metav1.OwnerReference{snapshotjob.OwnerReference(s, kind)},
			},
			Spec: corev1.ServiceSpec{
				ClusterIP:                corev1.ClusterIPNone,
				PublishNotReadyAddresses: true,
				Selector:                 labels.Merge(selector, labels.Set{v1alpha1.LabelShard: strconv.Itoa(ordinal)}),
				Ports: []corev1.ServicePort{{Name: "memcached", Protocol: corev1.ProtocolTCP,
					Port: agentapi.MemcachedPort, TargetPort: intstr.FromInt32(agentapi.MemcachedPort)}},
			},
		})
	}
	return services, nil
}
