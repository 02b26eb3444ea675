package items

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

// As behind an address whose proxy doesn't know of the next pod yet.
func TestItemsAreReadWhenTheAddressAnswersLater(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			served <- err
			return
		}
		conn, err := listener.Accept()
		if err == nil {
			_, err = bufio.NewReader(conn).ReadString('\n')
			_, writeErr := fmt.Fprintf(conn, "VALUE set-0 0 24\r\nset-0.set-0.set-0.set-0.\r\nEND\r\n")
			err = errors.Join(err, writeErr)
		}
		served <- errors.Join(err, listener.Close())
	})
	set := New("set", 1, address)
	defer func() { _ = set.Close() }()
	if n, err := set.Count(); n != 1 || err != nil {
		t.Errorf("%d items, %v; want the one", n, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
