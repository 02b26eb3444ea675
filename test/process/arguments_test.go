package process

import (
	"slices"
	"strings"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// The meaning of an option can depend on the version: slab_chunk_max was in bytes.
func TestAgentUsesTheUnitOfTheVersion(t *testing.T) {
	t.Parallel()
	for version, chunkMax := range map[string]string{pods.Oldest: "524288", pods.Newest: "512"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			s.Memcached = pods.MemcachedPath(version)
			first := s.Run()
			pods.Fill(t, s.Address(), 100)
			s.Annotate(agentwire.ArgumentsFile, s.Arguments("-o", "slab_chunk_max="+chunkMax))
			pods.WantWarm(t, s.WaitFor("the restart", func(status agentwire.Status) bool {
				return status.Phase == agentwire.PhaseServing && status.PID != first.PID
			}), 100)
		})
	}
}

func TestExtstoreRequiresANewPod(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	s.Run()
	s.Annotate(agentwire.ArgumentsFile, s.Arguments("-o", "ext_path="+s.Data+"/ext:64m"))
	status := s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	pods.WantContains(t, "the rejection", status.ArgumentsError, "extstore")
}

func TestNewContainerAppliesArgumentsThatKeepTheItems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args      []string
		applied   bool
		rejection string
	}{
		"applies arguments that fit":                    {[]string{"-t", "2"}, true, ""},
		"keeps the items instead of the new memory":     {[]string{"-m", "96"}, false, "they require a new pod, because memcached cannot reload its items with them: the memory limit (-m)"},
		"keeps the items instead of invalid arguments":  {[]string{"-q"}, false, "memcached does not start with them"},
		"keeps the items instead of a forbidden option": {[]string{"-e", "/tmp/x"}, false, "option -e is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			first := s.Run()
			pods.Fill(t, s.Address(), 1000)
			s.StopContainer()
			s.Annotate(agentwire.ArgumentsFile, s.Arguments(c.args...))
			status := s.Run()
			pods.WantWarm(t, status, 1000)
			pods.WantContains(t, "the rejection", status.ArgumentsError, c.rejection)
			if (status.ArgumentsError == "") != c.applied || slices.Equal(status.Arguments, first.Arguments) == c.applied {
				t.Errorf("applied %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

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
