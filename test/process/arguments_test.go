package process

import (
	"path/filepath"
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

func TestAgentRejectsInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":               {"-m 64", "the arguments are not a JSON array of strings"},
		"another JSON type":      {`{"m":64}`, "the arguments are not a JSON array of strings"},
		"two arrays":             {`["-v"]["-v"]`, "unexpected text after the array"},
		"a NUL byte":             {`["-P","a\u0000b"]`, "NUL"},
		"the agent's own option": {`["-e","/tmp/x"]`, "option -e is not allowed"},
		"its long form":          {`["--memory-file=/tmp/x"]`, "option -e is not allowed"},
		"a daemon":               {`["-vd"]`, "option -d is not allowed"},
		"an unknown option":      {`["-q"]`, "memcached does not start with them"},
		"an unknown suboption":   {`["-o","nonsense"]`, "memcached does not start with them"},
		"a number out of bounds": {`["-t","0"]`, "Number of threads must be greater than 0"},
		"no connections":         {`["-c","0"]`, "memcached does not start with them"},
		"a missing certificate":  {`["-Z"]`, "memcached does not start with them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := pods.NewShard(t)
			first := s.Run()
			pods.Fill(t, s.Address(), 100)
			s.Annotate(agentwire.ArgumentsFile, c.text)
			status := s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
			pods.WantContains(t, "the rejection", status.ArgumentsError, c.want)
			if status.PID != first.PID || status.Items != 100 {
				t.Errorf("memcached was changed: %+v", status)
			}
			s.Annotate(agentwire.ArgumentsFile, s.Arguments())
			s.WaitFor("the rejection to disappear with its cause", func(status agentwire.Status) bool { return status.ArgumentsError == "" })
		})
	}
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

func TestRequestedRestartTriesRejectedArgumentsAgain(t *testing.T) {
	t.Parallel()
	s := pods.NewShard(t)
	file := s.Dir + "/allowed"
	memcached := s.Memcached
	s.Memcached = filepath.Join(s.Dir, "program")
	script(t, s.Memcached, `case "$*" in *"-t 2"*) test -e `+file+` || exit 1;; esac
exec `+memcached+` "$@"`)
	s.Run()
	s.Annotate(agentwire.ArgumentsFile, s.Arguments("-t", "2"))
	s.WaitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	pods.WriteFile(t, file, "")
	s.Annotate(agentwire.RestartFile, "retry")
	status := s.WaitFor("the restart", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Restart == "retry" && status.Start.Result == agentwire.StartWarm
	})
	if status.ArgumentsError != "" || !slices.Contains(status.Arguments, "-t") {
		t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
	}
}
