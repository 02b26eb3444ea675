package task

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestProgressIsServedUntilTheRunStops(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Progress{TaskID: "of-this", Items: 3, TotalItems: 5, Bytes: 700, ItemsPerSecond: 2}
	stop := serve(listener, func() wire.Progress { return want })
	url := "http://" + listener.Addr().String()
	response, err := http.Get(url + "/progress")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got wire.Progress
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	health, err := http.Get(url + "/healthz")
	if err != nil || health.StatusCode != http.StatusOK {
		t.Errorf("health: %v, %v", health, err)
	}
	if err == nil {
		_ = health.Body.Close()
	}
	stop()
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) { // another program may listen at its port
		t.Errorf("it listens after it was stopped: %v", err)
	}
}
