package memcached

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/index"
)

// observer makes all reads.
type observer struct {
	// cache contains the operator's own objects; api is the API server.
	cache, api client.Reader
	agents     AgentClient
	agentWait  time.Duration
	clock      clock.PassiveClock
	options    resources.Options
	// defaultImageUpdates is how many Memcacheds follow another default image at a time.
	defaultImageUpdates int
}

// observe reads everything that a reconcile needs. The shards of a rejected spec are those of a paused Memcached.
func (r observer) observe(ctx context.Context, m *v1beta1.Memcached, memory observation.Memory) (*observation.Observation, error) {
	obs := &observation.Observation{
		Memcached:   m,
		Paused:      m.Spec.Paused,
		Memory:      memory,
		Now:         r.clock.Now(),
		Agents:      map[string]agentwire.Status{},
		Unreachable: map[string]bool{},
		Restores:    map[string]observation.Object{},
		Owned:       resources.OwnedMeta(m),
	}
	if err := r.observeImage(ctx, obs); err != nil {
		return nil, err
	}
	if err := r.observeShards(ctx, obs); err != nil {
		return nil, err
	}
	if obs.Rejected = plan.SpecProblem(obs, r.options); obs.Rejected != nil {
		obs.Memcached = resources.Paused(m)
		if err := r.observeShards(ctx, obs); err != nil {
			return nil, err
		}
	}
	queryAgents(ctx, r.agents, r.agentWait, obs)
	obs.ReadSecrets()
	for _, read := range []func(context.Context, *observation.Observation) error{r.observeRestores, r.observeBackups, r.observeFinalBackup, r.observeBinding, r.observeBudgets} {
		if err := read(ctx, obs); err != nil {
			return nil, err
		}
	}
	return obs, nil
}

// observeShards reads the objects and the pods.
func (r observer) observeShards(ctx context.Context, obs *observation.Observation) error {
	obs.Objects, obs.Pods, obs.HasRemains, obs.PreflightPods = map[resources.Key]observation.Object{}, map[string][]*corev1.Pod{}, false, nil
	if err := r.observeObjects(ctx, obs); err != nil {
		return err
	}
	if err := r.observePods(ctx, obs); err != nil {
		return err
	}
	obs.ReadShards()
	return nil
}

// observeObjects reads the objects of the Memcached. The cache contains those with the
// operator's label. Other names are looked up at the API server: they may be free, another
// owner's, newer than the cache, or without the label.
func (r observer) observeObjects(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	add := func(kind resources.Kind, o resources.APIObject) {
		obs.Objects[resources.Key{Kind: kind, Name: o.GetName()}] = observation.Object{APIObject: o, Owner: observation.OwnershipOf(m, o)}
	}
	for _, kind := range resources.OwnedKinds() {
		list := kind.NewList()
		if err := r.list(ctx, m, list, obs.Owned.Labels); err != nil {
			return err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			add(kind.Kind, o.(resources.APIObject))
			return nil
		}); err != nil {
			return err
		}
	}
	for _, key := range resources.Keys(m) {
		if _, ok := obs.Objects[key]; ok {
			continue
		}
		o := resources.NewObject(key.Kind)
		exists, err := r.lookUp(ctx, m.Namespace, key.Name, o)
		if err != nil {
			return err
		}
		if exists {
			add(key.Kind, o)
		}
	}
	return nil
}

// list reads the objects that were created for a Memcached and have these labels. They are
// the cache's own and must not be changed: copying them would be most of a reconcile that
// finds nothing to do.
func (r observer) list(ctx context.Context, m *v1beta1.Memcached, into client.ObjectList, labels map[string]string) error {
	err := r.cache.List(ctx, into, client.InNamespace(m.Namespace), client.MatchingLabels(labels), client.MatchingFields{index.Instance: m.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing %T: %w", into, err)
	}
	return nil
}

// lookUp reads an object from the API server and reports whether it exists.
func (r observer) lookUp(ctx context.Context, namespace, name string, o client.Object) (bool, error) {
	return apiserver.Find(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o, r.api)
}

// specIsCurrent reports whether the spec that was read is still the API server's, and the step of its scaling. An operator
// that has just started may read an older spec, with fewer shards, from an API server that
// lags behind.
func (r observer) specIsCurrent(ctx context.Context, m *v1beta1.Memcached) (bool, error) {
	latest := &v1beta1.Memcached{}
	exists, err := r.lookUp(ctx, m.Namespace, m.Name, latest)
	return exists && latest.UID == m.UID && latest.Generation == m.Generation && equality.Semantic.DeepEqual(latest.Status.Scaling, m.Status.Scaling), err
}

// observePods reads the pods that this Memcached's ReplicaSets control, and its preflight
// pods.
func (r observer) observePods(ctx context.Context, obs *observation.Observation) error {
	var pods, preflightPods corev1.PodList
	m := obs.Memcached
	if err := r.list(ctx, m, &pods, obs.Owned.Labels); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		controller := metav1.GetControllerOf(pod)
		if controller == nil {
			continue
		}
		set, ok := obs.Objects[resources.Key{Kind: resources.KindReplicaSet, Name: controller.Name}]
		if ok && set.GetUID() == controller.UID && set.IsManaged() {
			obs.Pods[set.GetName()] = append(obs.Pods[set.GetName()], pod)
		}
		_, ofShard := resources.Ordinal(m.Name, controller.Name)
		obs.HasRemains = obs.HasRemains || !ok && ofShard && pod.DeletionTimestamp == nil
	}
	for name, pods := range obs.Pods {
		slices.SortFunc(pods, shard.ComparePods)
		obs.Pods[name] = shard.Current(pods)
	}
	if err := r.list(ctx, m, &preflightPods, resources.PreflightLabels(m.Name)); err != nil {
		return err
	}
	for i := range preflightPods.Items {
		if metav1.IsControlledBy(&preflightPods.Items[i], m) {
			obs.PreflightPods = append(obs.PreflightPods, &preflightPods.Items[i])
		}
	}
	return nil
}

// observeImage determines the image. It lists the other Memcacheds if this one has another image than its spec selects, because
// of the default image, and keeps that image if the Memcached has to wait for others.
func (r observer) observeImage(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	obs.Image, obs.ImageError = resources.ResolveImage(m.Spec.Pod.Image, m.Spec.Version, r.options.DefaultImage)
	if resources.DependsOnDefault(m.Spec.Pod.Image, m.Spec.Version) {
		obs.DefaultImage = r.options.DefaultImage
		if observation.SelectsWithFormerDefault(m, obs.Image.Reference) { // that needs no write
			obs.DefaultImage = m.Status.DefaultImage
		}
	}
	if !observation.IsBehindDefaultImage(m, r.options.DefaultImage) {
		return nil
	}
	var all v1beta1.MemcachedList
	if err := r.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the Memcacheds that follow the default image: %w", err)
	}
	obs.DefaultImageHold = observation.HoldDefaultImage(m, all.Items, r.options.DefaultImage, r.defaultImageUpdates, obs.Now)
	if obs.DefaultImageHold.Message != "" {
		obs.DefaultImage = m.Status.DefaultImage
		obs.Image, obs.ImageError = resources.ResolveImage(m.Spec.Pod.Image, m.Spec.Version, m.Status.DefaultImage)
	}
	return nil
}

// observeRestores reads the restores into this Memcached.
func (r observer) observeRestores(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	restores, err := restoresInto(ctx, r.cache, m, client.MatchingFields{index.Memcached: m.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for _, restore := range restores {
		obs.Restores[restore.Name] = observation.Object{APIObject: restore, Owner: observation.OwnershipOf(m, restore)}
	}
	b := m.Status.Bootstrap
	if !b.IsRunning() || obs.Restores[b.RestoreName].APIObject != nil {
		return nil
	}
	restore := &v1beta1.MemcachedRestore{}
	exists, err := r.lookUp(ctx, m.Namespace, b.RestoreName, restore)
	if exists {
		obs.Restores[b.RestoreName] = observation.Object{APIObject: restore, Owner: observation.OwnershipOf(m, restore)}
	}
	return err
}

func restoresInto(ctx context.Context, from client.Reader, m *v1beta1.Memcached, options ...client.ListOption) (into []*v1beta1.MemcachedRestore, err error) {
	var restores v1beta1.MemcachedRestoreList
	if err := from.List(ctx, &restores, append(options, client.InNamespace(m.Namespace))...); err != nil {
		return nil, fmt.Errorf("listing restores: %w", err)
	}
	for i := range restores.Items {
		if restores.Items[i].Spec.MemcachedRef.Name == m.Name {
			into = append(into, &restores.Items[i])
		}
	}
	return into, nil
}

// restoreIsActive reports whether a restore writes into the shards by what the API server
// has stored: the cache may not contain yet that it has started.
func (r observer) restoreIsActive(ctx context.Context, m *v1beta1.Memcached) (bool, error) {
	restores, err := restoresInto(ctx, r.api, m)
	return slices.ContainsFunc(restores, func(restore *v1beta1.MemcachedRestore) bool { return restore.IsActive(r.clock.Now()) }), err
}

// observeBudgets reads the PodDisruptionBudgets that no Memcached controls.
func (r observer) observeBudgets(ctx context.Context, obs *observation.Observation) error {
	var budgets policyv1.PodDisruptionBudgetList
	err := r.cache.List(ctx, &budgets, client.InNamespace(obs.Memcached.Namespace), client.MatchingFields{index.Foreign: "true"}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing PodDisruptionBudgets: %w", err)
	}
	obs.Budgets = budgets.Items
	return nil
}

// observeBackups reads the backups of the Memcached when a shard may have been lost, or when shards may delete items.
func (r observer) observeBackups(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	deletes := m.Status.Scaling != nil || m.Status.Purge.IsActive()
	if !deletes && (!m.Spec.Backup.Refill.IsEnabled() || !observation.StartsEmpty(obs)) {
		return nil
	}
	var backups v1beta1.MemcachedBackupList
	if err := r.cache.List(ctx, &backups, client.InNamespace(m.Namespace), client.MatchingFields{index.Memcached: m.Name}); err != nil {
		return fmt.Errorf("listing backups: %w", err)
	}
	for i := range backups.Items {
		if backups.Items[i].Spec.MemcachedRef.Name == m.Name {
			obs.Backups = append(obs.Backups, &backups.Items[i])
		}
	}
	return nil
}

// observeFinalBackup reads the final backup of a Memcached that is being deleted.
func (r observer) observeFinalBackup(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	if m.DeletionTimestamp == nil || !controllerutil.ContainsFinalizer(m, v1beta1.FinalizerFinalBackup) {
		return nil
	}
	backup := &v1beta1.MemcachedBackup{}
	exists, err := r.lookUp(ctx, m.Namespace, observation.FinalBackupName(m), backup)
	if exists {
		obs.FinalBackup = backup
	}
	return err
}

// observeBinding reads the Secret when the status says that it exists with another list. The operator needs no right to
// read Secrets otherwise: a user grants it for this one.
func (r observer) observeBinding(ctx context.Context, obs *observation.Observation) error {
	m := obs.Memcached
	if !m.Spec.Access.Binding.IsEnabled() || m.Status.Binding == nil || !observation.BindingIsOutdated(m) {
		return nil
	}
	secret := &corev1.Secret{}
	exists, err := r.lookUp(ctx, m.Namespace, v1beta1.BindingSecretName(m.Name), secret)
	if obs.BindingForbidden = apierrors.IsForbidden(err); obs.BindingForbidden {
		return nil
	}
	if exists {
		obs.Binding = observation.Object{APIObject: secret, Owner: observation.OwnershipOf(m, secret)}
	}
	return err
}
