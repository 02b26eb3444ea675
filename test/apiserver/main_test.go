// Package apiserver has the tests that need a real API server, which all of them share. What only decides by objects is
// tested in the main module, in memory (internal/simtest).
package apiserver

import (
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

var (
	server *apiservertest.Server
	// admin has all permissions.
	admin client.Client
)

func TestMain(m *testing.M) {
	apiservertest.Main(m, func(s *apiservertest.Server) (err error) {
		ctrl.SetLogger(logr.Discard())
		server = s
		admin, err = client.New(server.Admin, client.Options{Scheme: simtest.Scheme()})
		return err
	})
}
