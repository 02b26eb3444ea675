package load

import (
	"testing"
	"time"
)

func TestSaturateCountsAnswersAndReportsLostItems(t *testing.T) {
	s := serve(t)
	l, err := New(Config{Addresses: []string{s.address}, Keys: 10, Rate: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if perSecond, p99, err := l.Saturate(t.Context(), 100*time.Millisecond); err != nil || perSecond < 10 || p99 <= 0 {
		t.Errorf("%.0f operations per second, p99 %s, %v", perSecond, p99, err)
	}
	s.down()
	if _, _, err := l.Saturate(t.Context(), time.Second); err == nil {
		t.Error("no error without a server")
	}
}
