package main

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

func TestCreatedObjectsAreDeletedAfterAnInterrupt(t *testing.T) {
	scheme := runtime.NewScheme()
	pods.Must(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)))
	e := &environment{Cluster: &cluster.Cluster{WithWatch: fake.NewClientBuilder().WithScheme(scheme).Build()}, began: time.Now()}
	failure := errors.New("failed")
	interrupted, cancel := context.WithCancel(t.Context())
	err := e.run(interrupted, func(ctx context.Context, e *environment) error {
		for _, o := range []client.Object{
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "claim"}},
			&v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "backup"}},
		} {
			pods.Must(t, e.createObject(ctx, o))
		}
		cancel()
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("error %v", err)
	}
	var claims corev1.PersistentVolumeClaimList
	var backups v1beta1.MemcachedBackupList
	pods.Must(t, errors.Join(e.List(t.Context(), &claims), e.List(t.Context(), &backups)))
	if len(claims.Items) != 0 || len(backups.Items) != 0 {
		t.Errorf("%d claims and %d backups are left", len(claims.Items), len(backups.Items))
	}
}
