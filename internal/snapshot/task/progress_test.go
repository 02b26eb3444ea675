package task

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestProgressIsServedUntilTheRunStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &fake.Network{}
		listener := network.Listen("pod")
		want := wire.Progress{TaskID: "of-this", Items: 3, TotalItems: 5, Bytes: 700, ItemsPerSecond: 2}
		stop := serve(listener, func() wire.Progress { return want })
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return network.DialContext(ctx, "tcp", "pod")
		}}}
		response, err := client.Get("http://pod/progress")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var got wire.Progress
		if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got != want {
			t.Errorf("got %+v, %v", got, err)
		}
		health, err := client.Get("http://pod/healthz")
		if err != nil || health.StatusCode != http.StatusOK {
			t.Errorf("health: %v, %v", health, err)
		}
		if err == nil {
			_ = health.Body.Close()
		}
		stop()
		if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("it listens after it was stopped: %v", err)
		}
	})
}
