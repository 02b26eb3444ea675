package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func modulo(spec *v1beta1.MemcachedSpec) {
	spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashModulo}
}

func TestBackupOnVolumeIsRestoredIntoSameAndNewMemcached(t *testing.T) {
	const shards, perShard = 2, 20_000
	s := newSpace(t)
	store := s.Claim()
	s.Serve("cache", suite.Small(shards))
	sets := s.fill("cache", shards, perShard)
	b := s.backedUp("first", "cache", store)
	if n := b.Status.Snapshot.Items; n != shards*perShard {
		t.Errorf("the snapshot contains %d items, the cache contained %d", n, shards*perShard)
	}
	s.Event("cache", v1beta1.EventBackupComplete, "first")

	s.flush("cache", shards)
	r := s.restored("again", "cache", "first")
	if r.Status.Restored != shards*perShard || r.Status.Kept != 0 {
		t.Errorf("the restore's status is %+v", r.Status)
	}
	for _, set := range sets {
		s.Holds(set)
	}
	// A value that is there is newer.
	if r := s.restored("once-more", "cache", "first"); r.Status.Restored != 0 || r.Status.Kept != shards*perShard {
		t.Errorf("over a full cache %d items were restored and %d kept", r.Status.Restored, r.Status.Kept)
	}

	s.Serve("other", suite.Small(shards))
	s.restored("into-other", "other", "first")
	for ordinal := range shards {
		s.Holds(s.filled("cache", "other", ordinal, perShard))
	}
}

// fill writes items to each shard of a Memcached.
func (s *space) fill(memcached string, shards, perShard int) []*items.Set {
	s.Helper()
	var sets []*items.Set
	for ordinal := range shards {
		set := s.Items(memcached, ordinal, perShard)
		s.Must(set.Fill())
		sets = append(sets, set)
	}
	return sets
}

// filled returns what fill wrote to a shard of one Memcached, as it must be in the same shard of another.
func (s *space) filled(from, into string, ordinal, perShard int) *items.Set {
	s.Helper()
	set := items.New(cluster.ShardName(from, ordinal), perShard, s.Address(into, ordinal))
	s.Cleanup(func() { _ = set.Close() })
	return set
}

// flush empties the shards of a Memcached.
func (s *space) flush(memcached string, shards int) {
	s.Helper()
	for ordinal := range shards {
		s.Must(items.Flush(s.Address(memcached, ordinal)))
	}
}

func TestRestoreIntoOtherSizeRequiresHashing(t *testing.T) {
	const perShard, size = 2, 10_000
	s := newSpace(t)
	store := s.Claim()
	s.Apply("cache", suite.Small(2))
	s.Apply("three", suite.Small(3))
	s.Available("cache")
	s.Available("three")
	// Spread by the client over both shards, which gomemcache does by crc32 modulo.
	spread := items.New("spread", size, s.Address("cache", 0), s.Address("cache", 1))
	s.Must(spread.Write())
	b := s.backedUp("first", "cache", store)
	into := v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: "three"}, BackupRef: &v1beta1.BackupReference{Name: b.Name}, RateLimit: cluster.Unlimited(),
	}
	status := s.failsFor(s.restore("rejected", into), v1beta1.ReasonSizeDiffers)
	for _, word := range []string{"spec.access.hashing", "2", "3"} {
		if !strings.Contains(status.Message(), word) {
			t.Errorf("the message lacks %q: %s", word, status.Message())
		}
	}
	three := items.New("spread", size, s.Address("three", 0), s.Address("three", 1), s.Address("three", 2))
	if n, err := three.Count(); err != nil || n != 0 {
		t.Errorf("a restore that was rejected left %d items, %v", n, err)
	}
	s.Serve("three", suite.Small(3, modulo))
	s.complete(s.restore("routed", into))
	s.Holds(three)
	// The other way round: fewer shards than the snapshot has.
	s.Serve("one", suite.Small(1, modulo))
	into.MemcachedRef.Name = "one"
	s.complete(s.restore("routed-to-one", into))
	s.Holds(items.New("spread", size, s.Address("one", 0)))
}

func TestDeletionPolicyBackupTakesFinalBackup(t *testing.T) {
	const shards, perShard = 2, 5_000
	s := newSpace(t)
	spec := suite.Small(shards)
	spec.DeletionPolicy, spec.Backup.Final = v1beta1.DeletionBackup, &v1beta1.FinalBackup{Store: s.Claim()}
	m := s.Serve("cache", spec)
	s.fill("cache", shards, perShard)
	p := probe.Start(s.Address("cache", 0))
	defer p.Stop()
	s.Must(k.Delete(s.Ctx, m))
	name := "cache-final-" + string(m.UID[:8])
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	s.Eventually("the last backup", func(ctx context.Context) error { return k.Get(ctx, s.Key(name), b) })
	s.complete(b)
	report := p.Stop()
	for _, failure := range report.Failures { // afterwards it may
		if failure.Failed.Before(b.Status.CompletionTime.Time) {
			t.Errorf("a connection failed before the last backup was complete, at %s: %s", b.Status.CompletionTime.Time, report)
			break
		}
	}
	if report.Connections == 0 {
		t.Error("the Memcached was probed by no connection")
	}
	s.Gone(&v1beta1.Memcached{}, "cache")
	if b.Status.Snapshot.Items != shards*perShard {
		t.Errorf("the last backup holds %d items of %d", b.Status.Snapshot.Items, shards*perShard)
	}
	// It comes back under its name, and is Ready once it is filled.
	s.Apply("cache", suite.Small(shards, func(spec *v1beta1.MemcachedSpec) {
		spec.Backup.Bootstrap = &v1beta1.Bootstrap{BackupRef: &v1beta1.BackupReference{Name: name}}
	}))
	m = s.Await("cache", "ready", func(m *v1beta1.Memcached) error {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionReady) {
			return fmt.Errorf("its conditions are %+v", m.Status.Conditions)
		}
		return nil
	})
	if m.Status.Bootstrap == nil || m.Status.Bootstrap.Phase != v1beta1.TransferComplete {
		t.Errorf("it is ready, and the bootstrap's status is %+v", m.Status.Bootstrap)
	}
	s.Event("cache", v1beta1.EventBootstrapFinished)
	for ordinal := range shards {
		s.Holds(s.filled("cache", "cache", ordinal, perShard))
	}
}

func TestLostShardIsRefilledFromNewestBackup(t *testing.T) {
	const perShard = 5_000
	s := newSpace(t)
	store := s.Claim()
	s.Apply("cache", suite.Small(2, func(spec *v1beta1.MemcachedSpec) {
		spec.Backup.Refill = v1beta1.Refill{Mode: v1beta1.RefillNewestBackup}
	}))
	s.Available("cache")
	s.fill("cache", 2, perShard)
	s.backedUp("first", "cache", store)
	lost := s.Pods("cache")["cache-1"]
	s.Must(k.Delete(s.Ctx, &lost, client.GracePeriodSeconds(0)))
	set := s.filled("cache", "cache", 1, perShard)
	s.Eventually("the items of the lost shard", func(context.Context) error {
		_, err := set.Keep(1)
		return err
	})
	s.Event("cache", v1beta1.EventRefillStarted, "cache-1", "first")
	s.Holds(s.filled("cache", "cache", 0, perShard))
	first := s.refills("cache")
	if len(first) != 1 || !slices.Equal(first[0].Spec.Shards, []int32{1}) {
		t.Fatalf("there are restores %+v", first)
	}
	// Once more: the restore of a deleted pod is of no use.
	lost = s.Pods("cache")["cache-1"]
	s.Must(k.Delete(s.Ctx, &lost, client.GracePeriodSeconds(0)))
	s.Eventually("another restore in the place of the first", func(context.Context) error {
		all := s.refills("cache")
		if len(all) != 1 || all[0].Name == first[0].Name || all[0].Status.Phase != v1beta1.TransferComplete {
			return fmt.Errorf("there are %d: %+v", len(all), all)
		}
		return nil
	})
	s.Holds(s.filled("cache", "cache", 1, perShard))
}

// refills returns the restores that there are into a Memcached.
func (s *space) refills(memcached string) []v1beta1.MemcachedRestore {
	s.Helper()
	var all v1beta1.MemcachedRestoreList
	s.Must(k.List(s.Ctx, &all, client.InNamespace(s.Namespace)))
	return slices.DeleteFunc(all.Items, func(r v1beta1.MemcachedRestore) bool { return r.Spec.MemcachedRef.Name != memcached })
}
