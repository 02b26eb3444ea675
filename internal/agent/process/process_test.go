package process

import (
	"log/slog"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

func TestMemcachedsOwnExitCodeIsKept(t *testing.T) {
	path := program(t, "echo one >&2; echo two >&2; exit 3")
	p, err := Start(path, nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done
	if message, code := p.ExitReason(); message != "memcached exited unexpectedly with code 3: two" || code != 3 {
		t.Errorf("%q, %d", message, code)
	}
	if _, err := Start(path+"-missing", nil, protocol.At("127.0.0.1:1"), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing program starts")
	}
}
