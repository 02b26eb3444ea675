package pods

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
)

// Service stands for a Service: one address that forwards each new connection to the current backend.
type Service struct {
	listener net.Listener
	Backend  atomic.Pointer[string]
}

// NewService returns a Service that forwards to a backend, until the test ends.
func NewService(t *testing.T, backend string) *Service {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", FreePort(t)))
	Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	s := &Service{listener: listener}
	s.Backend.Store(&backend)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go s.forward(client)
		}
	}()
	return s
}

// Address returns where the Service is reached.
func (s *Service) Address() string { return s.listener.Addr().String() }

func (s *Service) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", *s.Backend.Load())
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = server.(*net.TCPConn).ReadFrom(client)
		_ = server.(*net.TCPConn).CloseWrite()
	}()
	_, _ = client.(*net.TCPConn).ReadFrom(server)
}

// Greet connects and returns an error unless memcached answers.
func Greet(address string) error {
	_, err := RequestVersion(context.Background(), address, nil)
	return err
}
