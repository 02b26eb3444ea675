package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/s3"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// bucket runs a server of S3 and returns the store that it is.
func (s *space) bucket(prefix string) v1alpha1.SnapshotStore {
	s.Helper()
	store, err := s3.Deploy(s.Ctx, k, testImage, s.Namespace, prefix)
	s.Must(err)
	return store
}

func TestBackupInBucketIsRestoredAndDeletedWithItsObject(t *testing.T) {
	t.Parallel()
	const shards, perShard = 2, 20_000
	s := newSpace(t)
	store := s.bucket("cache/production")
	s.Apply("cache", suite.Small(shards))
	s.Available("cache")
	sets := s.fill("cache", shards, perShard)
	b := s.backup("first", v1alpha1.MemcachedBackupSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: cluster.Unlimited(), DeletionPolicy: v1alpha1.SnapshotDelete})
	s.complete(b)
	s.flush("cache", shards)
	if r := s.restored("again", "cache", "first"); r.Status.Restored != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}
	for _, set := range sets {
		s.Holds(set)
	}
	// Where it lies is all that another cluster needs to know.
	s.Apply("other", suite.Small(shards))
	s.Available("other")
	r := s.restore("from-elsewhere", v1alpha1.MemcachedRestoreSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "other"}, RateLimit: cluster.Unlimited(),
		Snapshot: &v1alpha1.SnapshotSource{Store: store, Path: b.Status.Snapshot.Path},
	})
	s.complete(r)
	if r.Status.Restored != shards*perShard {
		t.Errorf("the restore's status is %+v", r.Status)
	}
	s.Must(k.Delete(s.Ctx, b))
	s.Gone(b, b.Name)
	again := s.restore("after-it-went", v1alpha1.MemcachedRestoreSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "other"},
		Snapshot:     &v1alpha1.SnapshotSource{Store: store, Path: b.Status.Snapshot.Path},
	})
	s.contains(s.failsFor(again, v1alpha1.ReasonSnapshotNotFound).Message, b.Status.Snapshot.Path)
}

func TestBackupWithUnusableBucketReportsWhatToDo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	store := s.bucket("")
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	s.Must(k.Create(s.Ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "wrong"},
		Data:       map[string][]byte{"AWS_ACCESS_KEY_ID": []byte(s3.AccessKey), "AWS_SECRET_ACCESS_KEY": []byte("wrong")},
	}))
	for name, test := range map[string]struct {
		edit   func(*v1alpha1.S3Store)
		reason string
		word   string
	}{
		"wrong-secret":  {func(b *v1alpha1.S3Store) { b.CredentialsSecretName = "wrong" }, v1alpha1.ReasonStoreAccessDenied, "credentials"},
		"wrong-bucket":  {func(b *v1alpha1.S3Store) { b.Bucket = "another" }, v1alpha1.ReasonStoreNotFound, "another"},
		"no-authority":  {func(b *v1alpha1.S3Store) { b.CASecretName = "" }, v1alpha1.ReasonStoreCertificateInvalid, "ca.crt"},
		"not-encrypted": {func(b *v1alpha1.S3Store) { b.Endpoint = "http" + b.Endpoint[len("https"):] }, v1alpha1.ReasonStoreCertificateInvalid, "https://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s.in(t)
			b := *store.S3
			test.edit(&b)
			backup := s.backup(name, v1alpha1.MemcachedBackupSpec{
				MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: v1alpha1.SnapshotStore{S3: &b}})
			s.contains(s.failsFor(backup, test.reason).Message, test.word)
		})
	}
}

func TestBackupSurvivesRestartOfItsBucketServer(t *testing.T) {
	t.Parallel()
	const perShard = 20_000
	s := newSpace(t)
	store := s.bucket("")
	s.Apply("cache", suite.Small(1))
	s.Available("cache")
	s.fill("cache", 1, perShard)
	b := s.backup("interrupted", v1alpha1.MemcachedBackupSpec{
		MemcachedRef: v1alpha1.MemcachedReference{Name: "cache"}, Store: store, RateLimit: rate(perShard / 10)})
	s.copies(b)
	s.Must(s3.Scale(s.Ctx, k, s.Namespace, 0))
	s.Must(s3.Scale(s.Ctx, k, s.Namespace, 1))
	s.complete(b)
	if b.Status.Snapshot.Items != perShard {
		t.Errorf("the snapshot holds %+v", b.Status.Snapshot)
	}
}
