package serverclock

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestServersTimeCountsIfTheNodesIsWrong(t *testing.T) {
	var ahead time.Duration
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	c := &Clock{}
	if off := time.Until(c.Now()).Abs(); off > time.Minute {
		t.Errorf("before the first answer it is off by %s", off)
	}
	client := &http.Client{Transport: c.Observe(http.DefaultTransport)}
	for difference, want := range map[time.Duration]time.Duration{
		0: 0, 4 * time.Minute: 0, -4 * time.Minute: 0, 6 * time.Minute: 6 * time.Minute, -time.Hour: -time.Hour, 9000 * time.Hour: 9000 * time.Hour,
	} {
		ahead = difference
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := time.Until(c.Now()); (got - want).Abs() > time.Minute {
			t.Errorf("a server that is ahead by %s sets it to %s from now, want %s", difference, got, want)
		}
	}
}
