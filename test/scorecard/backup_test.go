package main

import (
	"context"
	"errors"
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

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// fakeEnvironment returns the environment of a test on a cluster with these objects.
func fakeEnvironment(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *environment {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
	return &environment{Cluster: &cluster.Cluster{WithWatch: c}, namespace: "tests", began: time.Now()}
}

func TestBackupTestRequiresADefaultStorageClass(t *testing.T) {
	for name, c := range map[string]struct {
		annotations map[string]string
		want        error
	}{
		"no annotation":    {nil, errNoStorage},
		"not the default":  {map[string]string{defaultClassAnnotations[0]: "false"}, errNoStorage},
		"the default":      {map[string]string{defaultClassAnnotations[0]: "true"}, nil},
		"the default, old": {map[string]string{defaultClassAnnotations[1]: "true"}, nil},
	} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard", Annotations: c.annotations}}
		if err := fakeEnvironment(t, interceptor.Funcs{}, class).hasStorage(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
	created := 0
	e := fakeEnvironment(t, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		created++
		return nil
	}})
	if err := e.run(t.Context(), backupRestore); !errors.Is(err, errNoStorage) || created != 0 {
		t.Errorf("no class: error %v after %d objects were created", err, created)
	}
}

func TestCreatedObjectsAreDeletedAfterAnInterrupt(t *testing.T) {
	e := fakeEnvironment(t, interceptor.Funcs{})
	failure := errors.New("failed")
	interrupted, cancel := context.WithCancel(t.Context())
	err := e.run(interrupted, func(ctx context.Context, e *environment) error {
		for _, o := range []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "claim"}},
			&v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "backup"}},
		} {
			if err := e.createObject(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	var claims corev1.PersistentVolumeClaimList
	var backups v1beta1.MemcachedBackupList
	if err := errors.Join(e.List(t.Context(), &claims), e.List(t.Context(), &backups)); err != nil {
		t.Fatal(err)
	}
	if len(claims.Items) != 0 || len(backups.Items) != 0 {
		t.Errorf("%d claims and %d backups are left", len(claims.Items), len(backups.Items))
	}
}
