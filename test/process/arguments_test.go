package process

import (
	"strings"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// Without saved items there is no dry run; the record of the last stop has the previous arguments.
func TestColdContainerFallsBackFromArgumentsThatMemcachedRejects(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	s.StopContainer()
	pods.Edit(t, s.Meta(), func(string) string { return "" })
	s.Annotate(agentwire.ArgumentsFile, s.Arguments("-I", "1024m"))
	status := s.Run()
	pods.WantContains(t, "the rejection", status.ArgumentsError, "memcached exited unexpectedly with code")
	if strings.Contains(strings.Join(status.Arguments, " "), "1024m") {
		t.Errorf("arguments %v", status.Arguments)
	}
}
