package status

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/condition"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Make returns the status of what was observed, planned and written.
func Make(obs *observation.Observation, p plan.Plan, res plan.Result, now time.Time) v1beta1.MemcachedStatus {
	m := obs.Memcached
	size := resources.SizesOf(m).Listed
	s := v1beta1.MemcachedStatus{
		ObservedGeneration: m.Generation,
		Image:              obs.Image.Reference,
		DefaultImage:       obs.DefaultImage,
		Selector:           labels.SelectorFromSet(resources.Labels(m.Name)).String(),
		Bootstrap:          p.Bootstrap.Status,
		Scaling:            p.Scaling.Status,
		LastScaling:        lastScaling(m.Status, p.Scaling.Status, now),
		Purge:              p.Scaling.Purge,
	}
	if obs.Rejected != nil { // new pods get the previous image
		s.Image, s.DefaultImage = m.Status.Image, m.Status.DefaultImage
	}
	for _, ordinal := range shardOrdinals(obs, res) {
		status := shardStatus(obs, p, res, resources.ShardName(m.Name, ordinal))
		s.Shards = append(s.Shards, status)
		if status.PodName != "" {
			s.Nodes = append(s.Nodes, status.PodName)
		}
		if ordinal >= size {
			continue
		}
		if status.Ready {
			s.ReadyShards++
		}
		if status.UpToDate {
			s.UpdatedShards++
		}
		key := resources.Key{Kind: resources.KindService, Name: status.Name}
		service, exists := obs.Objects[key]
		isListed := slices.Contains(m.Status.Servers, p.Servers[ordinal]) // whatever happens to its Service: a change of size begins from the list
		if exists && service.Owner == observation.Ours || isListed || res.Applied[key] {
			s.Servers = append(s.Servers, p.Servers[ordinal])
		}
	}
	s.Size = int32(len(s.Shards)) //nolint:gosec // at most 128 by the CRD, and those that exist
	s.LimitedSize = resources.LimitedSize(m, s.Size)
	s.Version = oldestVersion(s.Shards)
	if obs.Rejected == nil && obs.Image.Version != s.Version {
		s.TargetVersion = obs.Image.Version
	}
	if s.Discovery = p.Discovery.Status; s.Discovery == nil && m.Spec.Paused {
		s.Discovery = m.Status.Discovery
	}
	s.Binding = bindingStatus(m, p.Binding, res)
	s.External, s.TLS = externalStatus(obs), tlsStatus(obs)
	s.Update = updateStatus(obs, p, s, now)
	s.LastUpdate = updateCost(obs, p, &s, now)
	available, progressing, degraded := conditions(obs, p, res, s, firstProblem(obs, p, res, s))
	s.Conditions = condition.Set(m.Status.Conditions, m.Generation, now,
		append(condition.Of(health(m, s, available, progressing, degraded)), available, progressing, degraded)...)
	s.Phase = phase(m, available, progressing, degraded)
	return s
}

// lastScaling returns what the last change of the number of shards was: the one that was finishing, if it is over now.
func lastScaling(was v1beta1.MemcachedStatus, next *v1beta1.ScalingStatus, now time.Time) *v1beta1.ScalingStatus {
	s := was.Scaling
	if s == nil || s.Step != v1beta1.ScalingFinishing || s.From == s.To || next != nil && next.ID == s.ID {
		return was.LastScaling
	}
	last := s.DeepCopy()
	last.CompletionTime = new(metav1.NewTime(now.Truncate(time.Second)))
	return last
}

// bindingStatus returns the status of a binding after the writes. Without a plan, it stays what it was.
func bindingStatus(m *v1beta1.Memcached, p plan.Binding, res plan.Result) *v1beta1.BindingStatus {
	switch secret := p.Actions.Binding; {
	case !m.Spec.Access.Binding.IsEnabled():
		return nil
	case p.Status == nil:
		return m.Status.Binding
	case secret != nil && res.Applied[resources.KeyOf(secret)]:
		return &v1beta1.BindingStatus{Name: secret.Name, Size: int32(resources.SizesOf(m).Listed)} //nolint:gosec // at most 128 by the CRD
	case res.BindingRejection != nil:
		rejected := *p.Status
		message := fmt.Sprintf("the operator can't recreate the Secret %s if it was deleted, since the API server rejects it: %s", secret.Name, res.BindingRejection)
		rejected.Message = text.Truncate(message, v1beta1.MaxMessage)
		return &rejected
	default:
		return p.Status
	}
}

// oldestVersion returns the oldest version that a shard reports; empty if none does.
func oldestVersion(shards []v1beta1.ShardStatus) string {
	var oldest string
	var parsed *version.Version
	for i := range shards {
		v, err := version.ParseGeneric(shards[i].Version)
		if oldest == "" || err == nil && (parsed == nil || v.LessThan(parsed)) {
			oldest, parsed = shards[i].Version, v
		}
	}
	return oldest
}
