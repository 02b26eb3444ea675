package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/s3"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// rate is that many items a second for each shard.
func rate(items int32) *v1beta1.RateLimit {
	return &v1beta1.RateLimit{ItemsPerSecond: &items, BytesPerSecond: &resource.Quantity{}}
}

// bucket runs a server of S3 and returns the store that it is.
func (s *space) bucket(prefix string) v1beta1.SnapshotStore {
	s.Helper()
	store, err := s3.Deploy(s.Ctx, k, testImage, s.Namespace, prefix)
	s.Must(err)
	return store
}

// backup makes a MemcachedBackup and does not wait for it.
func (s *space) backup(name string, spec v1beta1.MemcachedBackupSpec) *v1beta1.MemcachedBackup {
	s.Helper()
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: spec}
	s.Must(k.Create(s.Ctx, b))
	return b
}

// backedUp makes a MemcachedBackup without a limit and waits until it is Complete.
func (s *space) backedUp(name, memcached string, store v1beta1.SnapshotStore) *v1beta1.MemcachedBackup {
	s.Helper()
	b := s.backup(name, v1beta1.MemcachedBackupSpec{MemcachedRef: v1beta1.MemcachedReference{Name: memcached}, Store: store, RateLimit: cluster.Unlimited()})
	s.complete(b)
	return b
}

// restore makes a MemcachedRestore and does not wait for it.
func (s *space) restore(name string, spec v1beta1.MemcachedRestoreSpec) *v1beta1.MemcachedRestore {
	s.Helper()
	r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Spec: spec}
	s.Must(k.Create(s.Ctx, r))
	return r
}

// restored makes a MemcachedRestore of a backup without a limit and waits until it is Complete.
func (s *space) restored(name, memcached, backup string) *v1beta1.MemcachedRestore {
	s.Helper()
	r := s.restore(name, v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: memcached}, BackupRef: &v1beta1.BackupReference{Name: backup}, RateLimit: cluster.Unlimited(),
	})
	s.complete(r)
	return r
}

// complete waits until a MemcachedBackup or MemcachedRestore is Complete, and reads it.
func (s *space) complete(o client.Object) {
	s.Helper()
	s.Must(k.Complete(s.Ctx, o, nil))
}

// failsFor waits until a MemcachedBackup or MemcachedRestore is Failed for that reason.
func (s *space) failsFor(o client.Object, reason string) *v1beta1.TransferStatus {
	s.Helper()
	s.Must(k.AwaitFinished(s.Ctx, o, nil))
	status := cluster.RunStatus(o)
	if status.Phase != v1beta1.TransferFailed || status.Reason() != reason {
		s.Errorf("%s is %s: %s: %s; want Failed for %s", o.GetName(), status.Phase, status.Reason(), status.Message(), reason)
	}
	return status
}

// copies waits until a MemcachedBackup or MemcachedRestore reports items that it has copied while it runs.
func (s *space) copies(o client.Object) {
	s.Helper()
	s.Eventually("progress of "+o.GetName(), func(ctx context.Context) error {
		if err := k.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		status := cluster.RunStatus(o)
		if status.Phase == v1beta1.TransferComplete || status.Phase == v1beta1.TransferFailed {
			s.Fatalf("%s should report its progress, and is %s: %s: %s", o.GetName(), status.Phase, status.Reason(), status.Message())
		}
		if status.Progress == nil || status.Progress.Items == 0 || status.Progress.Percent >= 100 {
			return fmt.Errorf("it is %q: %s: %s, progress %+v", status.Phase, status.Reason(), status.Message(), status.Progress)
		}
		return nil
	})
}

// Their store is a bucket. Where a snapshot is there is all that another cluster needs to know.
func TestScheduleCreatesBackupsAndDeletesOldOnesWithTheirSnapshots(t *testing.T) {
	s := newSpace(t)
	store := s.bucket("cache/production")
	s.Serve("cache", suite.Small(1))
	const items = 1000
	s.fill("cache", 1, items)
	schedule := &v1beta1.MemcachedScheduledBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "each-minute"},
		Spec: v1beta1.MemcachedScheduledBackupSpec{
			Schedule:  "* * * * *",
			Retention: &v1beta1.BackupRetention{SuccessfulBackupsHistoryLimit: new(int32(1))},
			BackupTemplate: v1beta1.MemcachedBackupTemplate{Spec: v1beta1.MemcachedBackupSpec{
				MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: cluster.Unlimited(),
			}},
		},
	}
	s.Must(k.Create(s.Ctx, schedule))
	suspend := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))
	var first, second v1beta1.MemcachedBackup
	s.Eventually("a second backup in the place of the first", func(ctx context.Context) error {
		var made v1beta1.MemcachedBackupList
		if err := errors.Join(
			k.Get(ctx, client.ObjectKeyFromObject(schedule), schedule),
			k.List(ctx, &made, client.InNamespace(s.Namespace), client.MatchingLabels{v1beta1.LabelSchedule: schedule.Name}),
		); err != nil {
			return err
		}
		var found []string
		for _, b := range made.Items {
			if b.Status.Phase == v1beta1.TransferComplete && first.Name == "" {
				first = b
			}
			second = b // the newest, by its name
			found = append(found, fmt.Sprintf("%s %s", b.Name, b.Status.Phase))
		}
		status, suspended := schedule.Status, schedule.Spec.Suspend
		if first.Name != "" && second.Name != first.Name && !suspended && status.LastSuccessfulTime != nil && status.NextScheduleTime != nil {
			// The next run would delete the second one, too.
			return cmp.Or(k.Patch(ctx, schedule, suspend), errors.New("the schedule was just suspended"))
		}
		if !suspended || len(made.Items) != 1 || second.Name == first.Name || second.Status.Phase != v1beta1.TransferComplete {
			return fmt.Errorf("there are %q, the schedule's status is %+v", found, status)
		}
		return nil
	})
	s.flush("cache", 1)
	of := func(name string, b v1beta1.MemcachedBackup) *v1beta1.MemcachedRestore {
		return s.restore(name, v1beta1.MemcachedRestoreSpec{
			MemcachedRef: v1beta1.MemcachedReference{Name: "cache"}, RateLimit: cluster.Unlimited(),
			Snapshot: &v1beta1.SnapshotSource{Store: store, Path: b.Status.Snapshot.Path},
		})
	}
	r := of("of-the-second", second)
	if s.complete(r); r.Status.Restored != items {
		t.Errorf("%d of %d items were restored", r.Status.Restored, items)
	}
	if status := s.failsFor(of("of-the-first", first), v1beta1.ReasonSnapshotNotFound); !strings.Contains(status.Message(), first.Status.Snapshot.Path) {
		t.Errorf("the message doesn't say what is missing: %s", status.Message())
	}
}
