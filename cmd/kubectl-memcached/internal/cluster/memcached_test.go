package cluster

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// network has memcached of a pod.
type network struct {
	Pods
	fake.Network
}

func (n *network) Dial(ctx context.Context, _, pod string, port int) (net.Conn, error) {
	conn, err := n.DialContext(ctx, "tcp", net.JoinHostPort(pod, strconv.Itoa(port)))
	if err != nil {
		return closedPort{}, nil // as through a port-forward, the reader learns it
	}
	return conn, nil
}

type closedPort struct{ net.Conn }

func (closedPort) Read([]byte) (int, error)    { return 0, unreachable{"connection refused"} }
func (closedPort) Write(p []byte) (int, error) { return len(p), nil }
func (closedPort) SetDeadline(time.Time) error { return nil }
func (closedPort) Close() error                { return nil }

// denying is a client that may not read Secrets.
type denying struct{ client.Client }

func (denying) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "cache-auth", errors.New(`User "bob" cannot get`))
}

func TestConnectionToMemcachedOfAShard(t *testing.T) {
	tls := func(m *v1beta1.Memcached) { m.Spec.TLS.Mode = v1beta1.TLSRequired }
	bind := func(m *v1beta1.Memcached) { m.Spec.Access.Binding.Mode = v1beta1.BindingSecret }
	nothing := func(*v1beta1.Memcached) {}
	const login = "shop s3cret"
	for name, c := range map[string]struct {
		spec    func(*v1beta1.Memcached)
		port    string
		login   string // that memcached requires
		secrets map[string]map[string]string
		denied  bool
		err     string
	}{
		"without TLS":                       {spec: nothing, port: "11211"},
		"with TLS, from within the pod":     {spec: tls, port: "11215"},
		"before it restarts with TLS":       {spec: tls, port: "11211"},
		"with TLS that the spec has lost":   {spec: nothing, port: "11215"},
		"memcached that is absent":          {spec: nothing, port: "1", err: "connection refused"},
		"a user of spec.auth":               {spec: nothing, port: "11211", login: login, secrets: map[string]map[string]string{"cache-auth": {"former": "x", "shop": "s3cret\n"}}},
		"the user of the binding":           {spec: bind, port: "11211", login: "binding abc", secrets: map[string]map[string]string{"cache-binding": {"password": "abc", "host": "h"}}},
		"a Secret with other users":         {spec: nothing, port: "11211", login: login, secrets: map[string]map[string]string{"cache-auth": {"shop": "old"}}, err: "a login that Secret cache-auth doesn't have"},
		"no Secret":                         {spec: nothing, port: "11211", login: login, err: "it has no users"},
		"a Secret that the user can't read": {spec: nothing, port: "11211", login: login, denied: true, err: "reading Secret cache-auth for the login"},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			api := simtest.NewServer(time.Now, func() types.UID { n++; return types.UID(strconv.Itoa(n)) })
			for name, entries := range c.secrets {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{}}
				for key, value := range entries {
					s.Data[key] = []byte(value)
				}
				if err := api.Create(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}
			c.spec(m)
			pods := &network{}
			server := fake.New()
			if c.login != "" {
				server.LogIn = func(credentials string) bool { return credentials == c.login }
			}
			server.Set("key", fake.Item{Value: "value"})
			defer server.Serve(&pods.Network, "cache-0-a:"+c.port).Stop()
			cluster := &Cluster{Client: api, Pods: pods}
			if c.denied {
				cluster.Client = denying{api}
			}
			conn, err := cluster.Server(m, "cache-0-a").Dial(t.Context())
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || apierrors.IsForbidden(err) != c.denied {
					t.Errorf("got %v, want %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, value, err := conn.Get(t.Context(), "key", " v"); string(value) != "value" || err != nil {
				t.Errorf("got %q, %v", value, err)
			}
		})
	}
}
