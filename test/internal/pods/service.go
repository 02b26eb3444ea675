package pods

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// service stands for a Service: one address that forwards each new connection to the
// current backend.
type service struct {
	listener net.Listener
	Backend  atomic.Pointer[string]
}

func NewService(t *testing.T, backend string) *service {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", FreePort(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{listener: listener}
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

func (s *service) Address() string { return s.listener.Addr().String() }

func (s *service) forward(client net.Conn) {
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

// Visit opens a new connection to a memcached each 20 ms and counts all and failed
// ones, until stop is closed.
func Visit(address string, stop <-chan struct{}) <-chan [2]int {
	result := make(chan [2]int, 1)
	go func() {
		var tried, failed int
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-stop:
				result <- [2]int{tried, failed}
				return
			case <-pace.C:
			}
			tried++
			if err := Greet(address); err != nil {
				failed++
			}
		}
	}()
	return result
}

func Greet(address string) error {
	conn, err := net.DialTimeout("tcp", address, Patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Patience))
	if _, err := conn.Write([]byte("version\r\n")); err != nil {
		return err
	}
	response := make([]byte, 100)
	n, err := conn.Read(response)
	if err == nil && !strings.HasPrefix(string(response[:n]), "VERSION ") {
		err = fmt.Errorf("unexpected response %q", response[:n])
	}
	return err
}

func Ref(text string) *string { return &text }
