package e2e

import (
	"context"
	"fmt"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// Who can create a namespace named svc can answer for the names of all others, as long as they don't end with a dot.
func TestNamespaceNamedSvcDoesNotCaptureABackup(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Apply("cache", suite.Small(1))
	m := s.Available("cache")
	set := s.Written("cache", 0, 100)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "svc"}}
	s.Must(k.Create(s.Ctx, namespace))
	t.Cleanup(func() { s.Must(k.Delete(context.Background(), namespace)) })
	const captor = "192.0.2.1" // RFC 5737: no machine has it
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "svc", Name: s.Namespace},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Port: 11211}}}}
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "svc", Name: s.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: s.Namespace}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(11211))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{captor}, Hostname: new("cache-0")}},
	}
	s.Must(k.Create(s.Ctx, service))
	s.Must(k.Create(s.Ctx, endpoints))
	host, _, err := net.SplitHostPort(m.Status.Servers[0])
	s.Must(err)
	s.Eventually("the capture of "+host, func(ctx context.Context) error {
		if found, err := net.DefaultResolver.LookupHost(ctx, host); err != nil || found[0] != captor {
			return fmt.Errorf("it resolves to %v: %w", found, err)
		}
		return nil
	})
	if b := s.backedUp("first", "cache", s.claim("backups")); b.Status.Snapshot.Items < 100 {
		t.Errorf("the snapshot contains %d items, the cache contains 100", b.Status.Snapshot.Items)
	}
	s.Holds(set)
}
