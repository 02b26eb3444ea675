package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// The problem is reported, and the cache is unchanged.
func TestFailedBackupReportsWhyAndDisturbsNoOther(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	store := s.claim("backups")
	s.Apply("cache", suite.Small(1))
	s.Apply("closed", suite.Small(1).WithExtraArgs("-X"))
	s.Available("cache")
	s.Available("closed")
	set := s.Written("cache", 0, 1000)
	before := s.Lives("cache")
	spec := func(memcached string, store v1alpha1.SnapshotStore) v1alpha1.MemcachedBackupSpec {
		return v1alpha1.MemcachedBackupSpec{MemcachedRef: v1alpha1.MemcachedReference{Name: memcached}, Store: store}
	}
	bucket := func(edit func(*v1alpha1.S3Store)) v1alpha1.SnapshotStore {
		b := &v1alpha1.S3Store{Bucket: "backups", Endpoint: "http://absent." + s.Namespace + ".svc:9000", CredentialsSecretName: "credentials"}
		edit(b)
		return v1alpha1.SnapshotStore{S3: b}
	}
	s.Must(k.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "credentials"},
		StringData: map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"},
	}))
	t.Run("backups", func(t *testing.T) {
		for name, c := range map[string]struct {
			spec   v1alpha1.MemcachedBackupSpec
			reason string
			says   []string
		}{
			"of-closed":      {spec("closed", store), v1alpha1.ReasonKeyDumpDisabled, []string{"-X"}},
			"within-no-time": {shortly(spec("cache", bucket(func(*v1alpha1.S3Store) {}))), v1alpha1.ReasonDeadlineExceeded, []string{"10s"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				b := s.backup(name, c.spec)
				status := s.failsFor(b, c.reason)
				s.contains(status.Message, c.says...)
				if b.Status.Snapshot != nil {
					t.Errorf("it reports a snapshot: %+v", b.Status.Snapshot)
				}
			})
		}
	})
	t.Run("jobs that cannot start", func(t *testing.T) {
		for name, store := range map[string]v1alpha1.SnapshotStore{
			"without-secret": bucket(func(b *v1alpha1.S3Store) { b.CredentialsSecretName = "absent" }),
			"without-claim":  {PersistentVolumeClaim: &v1alpha1.PersistentVolumeClaimStore{ClaimName: "absent"}},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := s.in(t)
				b := s.backup(name, spec("cache", store))
				s.Eventually("why it cannot start", func(ctx context.Context) error {
					if err := k.Get(ctx, s.Key(name), b); err != nil {
						return err
					}
					if b.Status.Phase != v1alpha1.TransferRunning || b.Status.Reason != v1alpha1.ReasonJobCannotStart {
						return fmt.Errorf("it is %s: %s: %s", b.Status.Phase, b.Status.Reason, b.Status.Message)
					}
					return nil
				})
				s.contains(b.Status.Message, "absent")
			})
		}
	})
	s.Untouched("cache", before)
	s.Holds(set)
}

func shortly(spec v1alpha1.MemcachedBackupSpec) v1alpha1.MemcachedBackupSpec {
	spec.DeadlineSeconds = new(int32(10))
	return spec
}
