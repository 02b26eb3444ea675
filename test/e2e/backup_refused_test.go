package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// What is wrong is told, and the cache is as it was.
func TestABackupThatCannotBeSaysWhyAndDisturbsNobody(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	store := s.claim("backups")
	s.apply("cache", small(1))
	s.apply("closed", small(1).WithExtraArgs("-X"))
	s.apply("none", small(0))
	s.available("cache")
	s.available("closed")
	set := s.written("cache", 0, 1000)
	before := s.lives("cache")
	spec := func(memcached string, store v1alpha1.SnapshotStore) v1alpha1.MemcachedBackupSpec {
		return v1alpha1.MemcachedBackupSpec{Memcached: v1alpha1.MemcachedReference{Name: memcached}, Store: store}
	}
	bucket := func(edit func(*v1alpha1.S3Store)) v1alpha1.SnapshotStore {
		b := &v1alpha1.S3Store{Bucket: "backups", Endpoint: "http://nobody." + s.namespace + ".svc:9000", CredentialsSecret: "credentials"}
		edit(b)
		return v1alpha1.SnapshotStore{S3: b}
	}
	s.must(k.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "credentials"},
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"},
	}))
	t.Run("backups", func(t *testing.T) {
		for name, c := range map[string]struct {
			spec   v1alpha1.MemcachedBackupSpec
			reason string
			says   []string
		}{
			"of-nothing":       {spec("absent", store), v1alpha1.ReasonMemcachedNotFound, []string{"absent"}},
			"of-no-shard":      {spec("none", store), v1alpha1.ReasonNothingRuns, []string{"size"}},
			"of-closed":        {spec("closed", store), v1alpha1.ReasonDumpForbidden, []string{"-X"}},
			"to-nobody":        {spec("cache", bucket(func(*v1alpha1.S3Store) {})), v1alpha1.ReasonStoreUnreachable, []string{"endpoint"}},
			"within-no-time":   {shortly(spec("cache", bucket(func(*v1alpha1.S3Store) {}))), v1alpha1.ReasonDeadlineExceeded, []string{"10s"}},
			"with-bad-address": {spec("cache", bucket(func(b *v1alpha1.S3Store) { b.Endpoint = "https://" + s.namespace + ".invalid" })), v1alpha1.ReasonStoreUnreachable, []string{"endpoint"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				b := s.backup(name, c.spec)
				status := s.failsFor(b, c.reason)
				s.says(status.Message, c.says...)
				if b.Status.Snapshot != nil {
					t.Errorf("it tells of a snapshot: %+v", b.Status.Snapshot)
				}
			})
		}
	})
	t.Run("jobs that cannot start", func(t *testing.T) {
		for name, store := range map[string]v1alpha1.SnapshotStore{
			"without-secret": bucket(func(b *v1alpha1.S3Store) { b.CredentialsSecret = "absent" }),
			"without-claim":  {PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "absent"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				b := s.backup(name, spec("cache", store))
				s.eventually("why it cannot start", func(ctx context.Context) error {
					if err := k.Get(ctx, s.key(name), b); err != nil {
						return err
					}
					if b.Status.Phase != v1alpha1.RunRunning || b.Status.Reason != v1alpha1.ReasonJobCannotStart {
						return fmt.Errorf("it is %s: %s: %s", b.Status.Phase, b.Status.Reason, b.Status.Message)
					}
					return nil
				})
				s.says(b.Status.Message, "absent")
			})
		}
	})
	t.Run("restores", func(t *testing.T) {
		s.backedUp("good", "cache", store)
		old := metav1.Duration{Duration: time.Nanosecond}
		for name, c := range map[string]struct {
			edit   func(*v1alpha1.MemcachedRestoreSpec)
			reason string
			says   []string
		}{
			"into-nothing":  {func(r *v1alpha1.MemcachedRestoreSpec) { r.Memcached.Name = "absent" }, v1alpha1.ReasonMemcachedNotFound, []string{"absent"}},
			"into-no-shard": {func(r *v1alpha1.MemcachedRestoreSpec) { r.Memcached.Name = "none" }, v1alpha1.ReasonNothingRuns, []string{"none"}},
			"of-no-backup":  {func(r *v1alpha1.MemcachedRestoreSpec) { r.Backup.Name = "absent" }, v1alpha1.ReasonBackupNotFound, []string{"absent"}},
			"of-no-snapshot": {func(r *v1alpha1.MemcachedRestoreSpec) {
				r.Backup, r.Snapshot = nil, &v1alpha1.SnapshotSource{Store: store, Path: "no/such/path"}
			}, v1alpha1.ReasonSnapshotNotFound, []string{"no/such/path"}},
			"too-late": {func(r *v1alpha1.MemcachedRestoreSpec) { r.MaxAge = &old }, v1alpha1.ReasonSnapshotTooOld, []string{"maxAge"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				spec := v1alpha1.MemcachedRestoreSpec{Memcached: v1alpha1.MemcachedReference{Name: "cache"}, Backup: &v1alpha1.BackupReference{Name: "good"}}
				c.edit(&spec)
				r := s.restore(name, spec)
				status := s.failsFor(r, c.reason)
				s.says(status.Message, c.says...)
				if r.Status.Restored != 0 {
					t.Errorf("%d items were restored", r.Status.Restored)
				}
			})
		}
	})
	s.untouched("cache", before)
	s.holds(set)
}

func shortly(spec v1alpha1.MemcachedBackupSpec) v1alpha1.MemcachedBackupSpec {
	spec.Deadline = &metav1.Duration{Duration: 10 * time.Second}
	return spec
}

func TestTheAPIRefusesWhatABackupCanGetWrongByItself(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	store := v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "claim"}}
	memcached := v1alpha1.MemcachedReference{Name: "cache"}
	both := store
	both.S3 = &v1alpha1.S3Store{Bucket: "backups", CredentialsSecret: "credentials"}
	outside := v1alpha1.SnapshotStore{PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "claim", Folder: "../other"}}
	for name, spec := range map[string]v1alpha1.MemcachedBackupSpec{
		"no store":            {Memcached: memcached},
		"two stores":          {Memcached: memcached, Store: both},
		"outside the volume":  {Memcached: memcached, Store: outside},
		"a negative deadline": {Memcached: memcached, Store: store, Deadline: &metav1.Duration{Duration: -time.Hour}},
	} {
		b := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, GenerateName: "bad-"}, Spec: spec}
		if err := k.Create(s.ctx, b); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := s.backup("good", v1alpha1.MemcachedBackupSpec{Memcached: memcached, Store: store})
	s.eventually("a label by a program that writes all of it", func(context.Context) error {
		s.must(k.Get(s.ctx, s.key(b.Name), b))
		b.Labels = map[string]string{"team": "search"}
		return k.Update(s.ctx, b)
	})
	s.eventually("a change that is refused for what it is", func(context.Context) error {
		b.Spec.Memcached.Name = "other"
		err := k.Update(s.ctx, b)
		if apierrors.IsConflict(err) {
			return errors.Join(err, k.Get(s.ctx, s.key(b.Name), b))
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "runs once") {
			t.Fatalf("a change of what runs once: %v", err)
		}
		return nil
	})
}
