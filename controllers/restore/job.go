package restore

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Store implements transfer.Transfer. It is empty once the backup was deleted; by then the
// Job has its own copy.
func (obs *observation) Store() v1alpha1.SnapshotStore {
	switch {
	case obs.restore.Spec.Snapshot != nil:
		return obs.restore.Spec.Snapshot.Store
	case obs.backup != nil:
		return obs.backup.Spec.Store
	}
	return v1alpha1.SnapshotStore{}
}

func (obs *observation) path() string {
	if s := obs.restore.Spec.Snapshot; s != nil {
		return s.Path
	}
	return ptr.Deref(cmp.Or(snapshotOf(obs), obs.restore.Status.Snapshot), v1alpha1.SnapshotStatus{}).Path
}

func snapshotOf(obs *observation) *v1alpha1.SnapshotStatus {
	if obs.backup == nil || obs.backup.Status.Phase != v1alpha1.TransferComplete {
		return nil
	}
	return obs.backup.Status.Snapshot
}

// bootstraps reports whether the shards of the Memcached don't serve until this restore
// has filled them.
func bootstraps(obs *observation) bool {
	b := obs.Memcached.Status.Bootstrap
	return b != nil && b.RestoreName == obs.restore.Name && b.Phase == v1alpha1.TransferRunning
}

func (obs *observation) Objects() ([]client.Object, error) {
	needed, err := services(obs)
	if err != nil {
		return nil, err
	}
	s, m := obs.restore, obs.Memcached
	items, bytes := transfer.Limits(s.Spec.RateLimit)
	load := &snapshotwire.Load{
		Replace: s.Spec.ExistingItems == v1alpha1.ExistingReplace,
		MaxAge:  v1alpha1.Seconds(s.Spec.MaxAgeSeconds, 0),
		MaxTTL:  v1alpha1.Seconds(s.Spec.MaxTTLSeconds, 0),
	}
	for _, shard := range s.Spec.Shards {
		load.Shards = append(load.Shards, int(shard))
	}
	if h := m.Spec.Hashing; h != nil {
		load.Ring, load.RingServers = string(h.Algorithm), ringServers(m)
	}
	servers := m.Status.Servers
	var objects []client.Object
	if len(needed) > 0 {
		servers = nil
		for _, service := range needed {
			servers = append(servers, resources.Server(s.Namespace, service.GetName()))
			if !obs.hasService(service.GetName()) {
				objects = append(objects, service)
			}
		}
	}
	job, err := obs.Options.Job(transfer.JobSpec{
		Prefix: transfer.Restore, Owner: s,
		Store: obs.Store(), Action: snapshotwire.ActionLoad, DeadlineSeconds: s.Spec.DeadlineSeconds, PullSecrets: m.Spec.ImagePullSecrets,
		Resources: s.Spec.Resources, Cache: cacheSize(obs), Memcached: m,
		Task: snapshotwire.Task{Path: obs.path(), Servers: servers, ItemsPerSecond: items, BytesPerSecond: bytes, Load: load},
	})
	return append(objects, job), err
}

func (obs *observation) hasService(name string) bool {
	return slices.ContainsFunc(obs.services, func(o client.Object) bool { return o.GetName() == name })
}

// cacheSize returns the size of the cache that the snapshot is of, if that is known, or else
// of the one that it is restored into.
func cacheSize(obs *observation) transfer.CacheSize {
	size := transfer.CacheSizeOf(obs.Memcached)
	if s := cmp.Or(snapshotOf(obs), obs.restore.Status.Snapshot); s != nil && s.Bytes > size.Shards*size.Memory {
		return transfer.CacheSize{Shards: 1, Memory: s.Bytes}
	}
	return size
}

func ringServers(m *v1alpha1.Memcached) []string {
	template := cmp.Or(m.Spec.Hashing.ServerNameTemplate, v1alpha1.DefaultServerNameTemplate)
	var names []string
	for ordinal := range int(*m.Spec.Size) {
		names = append(names, strings.NewReplacer("{shard}", resources.ShardName(m.Name, ordinal), "{namespace}", m.Namespace).Replace(template))
	}
	return names
}

// services returns the Services, in the order of the shards, by which a restore reaches
// shards that are not Ready. They select a shard's pod as its own Service does, but don't
// have its labels.
func services(obs *observation) (services []client.Object, err error) {
	if !bootstraps(obs) {
		return nil, nil
	}
	s, m := obs.restore, obs.Memcached
	selector, err := labels.ConvertSelectorToLabelsMap(m.Status.Selector)
	if err != nil {
		return nil, fmt.Errorf("parsing status.selector of the Memcached: %w", err)
	}
	for ordinal := range int(*m.Spec.Size) {
		services = append(services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: fmt.Sprintf("%s-%d", transfer.Name(transfer.Restore, s.UID), ordinal), Labels: transfer.Labels(transfer.Restore, s.UID),
				OwnerReferences: []metav1.OwnerReference{transfer.OwnerReference(s)},
			},
			Spec: corev1.ServiceSpec{
				ClusterIP:                corev1.ClusterIPNone,
				PublishNotReadyAddresses: true,
				Selector:                 labels.Merge(selector, labels.Set{v1alpha1.LabelShard: strconv.Itoa(ordinal)}),
				Ports: []corev1.ServicePort{{Name: "memcached", Protocol: corev1.ProtocolTCP,
					Port: agentwire.MemcachedPort, TargetPort: intstr.FromInt32(agentwire.MemcachedPort)}},
			},
		})
	}
	return services, nil
}
