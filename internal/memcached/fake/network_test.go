package fake

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// overTCP returns the two sides of a real connection.
func overTCP(t *testing.T) (client, server net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// What a test finds with the network in memory must not depend on which goroutine runs first.
func TestConnectionThatTheOtherSideHasClosedIsAsOverTCP(t *testing.T) {
	for name, connect := range map[string]func(*testing.T) (client, server net.Conn){
		"over TCP": overTCP, "in memory": func(*testing.T) (client, server net.Conn) { return Pipe() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := connect(t)
				for _, text := range []string{"an ", "answer"} {
					if _, err := io.WriteString(server, text); err != nil {
						t.Fatal(err)
					}
				}
				if err := server.Close(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				_, err := io.WriteString(client, "a request that is too late")
				synctest.Wait()
				if err := errors.Join(err, client.SetDeadline(time.Time{}), client.SetReadDeadline(time.Time{}), client.SetWriteDeadline(time.Time{})); err != nil {
					t.Errorf("after the other side has closed it: %v", err)
				}
				answer := make([]byte, len("an answer"))
				if _, err := io.ReadFull(client, answer); err != nil || string(answer) != "an answer" {
					t.Errorf("the answer is %q, %v", answer, err)
				}
				synctest.Wait()
				for err := error(nil); err == nil; { // until the kernel knows that the other side doesn't read
					_, err = client.Write([]byte("x"))
				}
				if err := client.SetDeadline(time.Time{}); err != nil {
					t.Errorf("after an error: %v", err)
				}
				_ = client.Close()
				_, read := client.Read(answer)
				_, written := client.Write(answer)
				for _, err := range []error{read, written, client.SetDeadline(time.Time{})} {
					if !errors.Is(err, net.ErrClosed) {
						t.Errorf("after it is closed: %v", err)
					}
				}
			})
		})
	}
}
