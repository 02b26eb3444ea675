package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// trialOn returns a trial on a cluster that has objects and intercepts what is asked.
func trialOn(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *trial {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &trial{Cluster: &cluster.Cluster{WithWatch: c}, namespace: "tests", began: time.Now()}
}

func class(name string, annotations map[string]string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

func TestWithoutADefaultStorageClassTheTestCannotBeDone(t *testing.T) {
	fast := class("fast", nil)
	not := class("not", map[string]string{defaultClassAnnotations[0]: "false"})
	for what, c := range map[string]struct {
		classes []client.Object
		want    error
	}{
		"no class":              {nil, errNoStorage},
		"none is the default":   {[]client.Object{fast, not}, errNoStorage},
		"one is the default":    {[]client.Object{fast, class("standard", map[string]string{defaultClassAnnotations[0]: "true"})}, nil},
		"one is it as formerly": {[]client.Object{class("old", map[string]string{defaultClassAnnotations[1]: "true"})}, nil},
	} {
		if err := trialOn(t, interceptor.Funcs{}, c.classes...).hasStorage(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	made := 0
	tr := trialOn(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		made++
		return nil
	}}, fast)
	if err := tr.run(t.Context(), backupRestore); !errors.Is(err, errNoStorage) || made != 0 {
		t.Errorf("the error is %v after %d objects were made", err, made)
	}
}

func TestASnapshotHasToHoldEveryItem(t *testing.T) {
	whole := v1alpha1.SnapshotStatus{Path: "tests/a/b", Shards: 2, Items: 2 * itemsPerShard, StoredBytes: 1, TakenAt: metav1.Now()}
	if err := holds(&whole, 2); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*v1alpha1.SnapshotStatus){
		"an item less":  func(s *v1alpha1.SnapshotStatus) { s.Items-- },
		"a shard less":  func(s *v1alpha1.SnapshotStatus) { s.Shards-- },
		"no path":       func(s *v1alpha1.SnapshotStatus) { s.Path = "" },
		"nothing there": func(s *v1alpha1.SnapshotStatus) { s.StoredBytes = 0 },
		"no time":       func(s *v1alpha1.SnapshotStatus) { s.TakenAt = metav1.Time{} },
	} {
		s := whole
		spoil(&s)
		if holds(&s, 2) == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
	if holds(nil, 2) == nil {
		t.Error("no snapshot is taken for one")
	}
}

func TestARestoreHasToTellWhatItWrote(t *testing.T) {
	if err := restored(&v1alpha1.MemcachedRestoreStatus{Restored: 10}, 10); err != nil {
		t.Error(err)
	}
	for what, status := range map[string]v1alpha1.MemcachedRestoreStatus{
		"fewer":        {Restored: 9},
		"some expired": {Restored: 10, Expired: 1},
		"some kept":    {Restored: 10, Kept: 1},
		"some refused": {Restored: 10, Refused: 1},
	} {
		if restored(&status, 10) == nil {
			t.Errorf("%s: it is taken", what)
		}
	}
}

func TestABackupThatFailsIsToldWithItsReason(t *testing.T) {
	// An operator that finds the volume full.
	tr := trialOn(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		if err := c.Get(ctx, key, o); err != nil {
			return err
		}
		if b, ok := o.(*v1alpha1.MemcachedBackup); ok {
			b.Status.RunStatus = v1alpha1.RunStatus{Phase: v1alpha1.RunFailed, Reason: v1alpha1.ReasonStoreFull, Message: "no space left"}
		}
		return nil
	}})
	s := &subject{trial: tr, key: client.ObjectKey{Namespace: "tests", Name: "cache"}, last: &v1alpha1.Memcached{}}
	_, err := s.backUp(t.Context(), "claim")
	var run *runError
	if !errors.As(err, &run) || run.reason != v1alpha1.ReasonStoreFull || !strings.Contains(err.Error(), "is Failed: StoreFull: no space left") {
		t.Errorf("the error is %v", err)
	}
	if !strings.Contains(tr.log.String(), "StoreFull: no space left") {
		t.Errorf("the log is %q", &tr.log)
	}
}

func TestWhatTheTestMadeIsDeletedHoweverItEnds(t *testing.T) {
	tr := trialOn(t, interceptor.Funcs{})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "claim"}}
	backup := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "backup"}}
	failure := errors.New("it fails")
	ended, cancel := context.WithCancel(t.Context())
	err := tr.run(ended, func(ctx context.Context, tr *trial) error {
		for _, o := range []client.Object{claim, backup} {
			if err := tr.make(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	var claims corev1.PersistentVolumeClaimList
	var backups v1alpha1.MemcachedBackupList
	if err := errors.Join(tr.List(t.Context(), &claims), tr.List(t.Context(), &backups)); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 0 || len(backups.Items) != 0 {
		t.Errorf("%d claims and %d backups are left", len(claims.Items), len(backups.Items))
	}
}

// A reason that is told has to stand in the document that the suggestion names.
func TestTheDocumentThatIsSuggestedHasThePart(t *testing.T) {
	lines := strings.Split(string(readFile(t, root+"/docs/backup.md")), "\n")
	if !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "#") && strings.HasSuffix(line, " When it fails")
	}) {
		t.Error(`docs/backup.md has no part "When it fails"`)
	}
}
