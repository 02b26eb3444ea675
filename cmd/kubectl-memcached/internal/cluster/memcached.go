package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// Server is memcached in a pod, through a port-forward. It needs no certificate: with spec.tls, memcached accepts connections from
// within the pod without TLS. It reads the users' Secret only if memcached requires a login.
func (c *Cluster) Server(m *v1beta1.Memcached, pod string) protocol.Server {
	return protocol.Server{Address: pod, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx, m, pod) }}
}

func (c *Cluster) dial(ctx context.Context, m *v1beta1.Memcached, pod string) (net.Conn, error) {
	conn, err := c.dialPort(ctx, m, pod, wire.LoopbackPort)
	if errors.Is(err, syscall.ECONNREFUSED) { // memcached runs without TLS, whatever spec.tls says
		return c.dialPort(ctx, m, pod, wire.MemcachedPort)
	}
	return conn, err
}

// dialPort returns a connection that is logged in, if that is required.
func (c *Cluster) dialPort(ctx context.Context, m *v1beta1.Memcached, pod string, port int) (net.Conn, error) {
	conn, err := c.Pods.Dial(ctx, m.Namespace, pod, port)
	if err != nil {
		return nil, fmt.Errorf("connecting to pod %s: %w", pod, err)
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // reading fails too
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, _ = io.WriteString(conn, "version\r\n")
	_, err = protocol.ReadVersion(bufio.NewReaderSize(conn, protocol.MaxLine))
	if rejection, ok := errors.AsType[*protocol.ClientError](err); ok && rejection.Message == "unauthenticated" {
		err = c.logIn(ctx, m, conn)
	}
	if !stop() && err != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting to memcached in pod %s: %w", pod, err), conn.Close())
	}
	return conn, conn.SetDeadline(time.Time{})
}

// logIn logs in as one of the users.
func (c *Cluster) logIn(ctx context.Context, m *v1beta1.Memcached, conn net.Conn) error {
	name, users, err := c.users(ctx, m)
	if err != nil {
		return err
	}
	err = errors.New("it has no users")
	for _, user := range slices.Sorted(maps.Keys(users)) {
		if err = protocol.Login(conn, user, strings.TrimRight(string(users[user]), "\r\n")); err == nil || !protocol.IsAnswer(err) {
			return err
		}
	}
	return fmt.Errorf("memcached requires a login that Secret %s doesn't have: %w. If the Secret has just changed, try again in two minutes", name, err)
}

// users returns the passwords of users, and the Secret with them.
func (c *Cluster) users(ctx context.Context, m *v1beta1.Memcached) (name string, users map[string][]byte, err error) {
	name = v1beta1.AuthSecretName(m.Name, m.Spec.Auth)
	var secret corev1.Secret
	err = c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, &secret)
	switch {
	case err == nil && len(secret.Data) > 0:
		return name, secret.Data, nil
	case err != nil && !apierrors.IsNotFound(err):
		return name, nil, fmt.Errorf("reading Secret %s for the login: %w", name, err)
	case !m.Spec.Access.Binding.IsEnabled():
		return name, nil, nil
	}
	name = v1beta1.BindingSecretName(m.Name)
	if err = c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, &secret); err != nil && !apierrors.IsNotFound(err) {
		return name, nil, fmt.Errorf("reading Secret %s for the login: %w", name, err)
	}
	if password, ok := secret.Data[v1beta1.BindingPasswordKey]; ok {
		users = map[string][]byte{v1beta1.BindingUser: password}
	}
	return name, users, nil
}
