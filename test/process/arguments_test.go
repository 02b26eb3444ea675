package process

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// changes are arguments with which memcached reloads its items, or rejects them. Each
// is tested with memcached alone and with the agent, whose verdict must be the same.
var changes = []struct {
	name   string
	args   []string
	reject bool
}{
	{"more memory", []string{"-m", "128"}, true},
	{"more memory, in one word", []string{"-m128"}, true},
	{"more memory, by the long name", []string{"--memory-limit=128"}, true},
	{"the same memory, by a shortened long name", []string{"--memory-l", "64"}, false},
	{"larger items", []string{"-I", "2m"}, true},
	{"the same largest item, in KiB", []string{"-I", "1024k"}, false},
	{"another growth factor", []string{"-f", "1.5"}, true},
	{"the default growth factor", []string{"-f", "1.25"}, false},
	{"the default growth factor, written otherwise", []string{"-f", "1.250"}, true},
	{"another smallest item", []string{"-n", "64"}, true},
	{"no CAS", []string{"-C"}, true},
	{"no CAS, within a word", []string{"-vC"}, true},
	{"slab sizes", []string{"-o", "slab_sizes=100-200-400-1000"}, true},
	{"no slab reassignment", []string{"-o", "no_slab_reassign"}, true},
	{"no slab reassignment, overridden", []string{"-o", "no_slab_reassign,slab_reassign"}, false},
	{"no modern", []string{"-o", "no_modern"}, true},
	{"modern", []string{"-o", "modern"}, false},
	{"another largest chunk", []string{"-o", "slab_chunk_max=256"}, true},
	// KiB since 1.6.24, bytes before.
	{"the default largest chunk, in KiB", []string{"-o", "slab_chunk_max=512"}, false},
	{"no chunked items", []string{"--extended=no_chunked_items"}, true},
	{"more threads", []string{"-t", "2"}, false},
	{"more connections", []string{"-c", "2048"}, false},
	{"another hash", []string{"-o", "hash_algorithm=jenkins"}, false},
	{"another hash power", []string{"-o", "hashpower=18"}, false},
	{"no LRU crawler", []string{"-o", "no_lru_crawler"}, false},
	{"no LRU maintainer", []string{"-o", "no_lru_maintainer"}, false},
	{"no automove", []string{"-o", "slab_automove=0"}, false},
	{"verbose", []string{"-v"}, false},
	{"no dumps", []string{"-X"}, false},
	{"no evictions", []string{"-M"}, false},
}

func TestMemcachedRejectsItemsAfterTheseChanges(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			for _, change := range changes {
				t.Run(change.name, func(t *testing.T) {
					t.Parallel()
					dir := sharedDir(t)
					first := startRaw(t, version, dir)
					fill(t, first.address(), 5)
					first.stop(syscall.SIGUSR1)
					nextSecond(stopSecond(t, first.meta()))
					second := startRaw(t, version, dir, change.args...)
					want := change.reject || version == oldest && change.args[len(change.args)-1] == "slab_chunk_max=512"
					if rejected := second.count() == 0; rejected != want {
						t.Errorf("rejected is %v, want %v", rejected, want)
					}
				})
			}
		})
	}
}

func TestAgentRejectsTheSameChangesAsMemcached(t *testing.T) {
	t.Parallel()
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentwire.ArgumentsFile, s.arguments(change.args...))
			if change.reject {
				status := s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
				wantContains(t, "the rejection", status.ArgumentsError, "they require a new pod")
				if status.PID != first.PID || status.Items != 100 || !slices.Equal(status.Arguments, first.Arguments) {
					t.Errorf("memcached was changed: %+v", status)
				}
				return
			}
			status := s.waitFor("the restart", func(status agentwire.Status) bool {
				return status.Phase == agentwire.PhaseServing && status.PID != first.PID
			})
			wantWarm(t, status, 100)
			if status.ArgumentsError != "" || len(status.Arguments) != len(first.Arguments)+len(change.args) {
				t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

// The meaning of an option can depend on the version: slab_chunk_max was in bytes.
func TestAgentUsesTheUnitOfTheVersion(t *testing.T) {
	t.Parallel()
	for version, chunkMax := range map[string]string{oldest: "524288", newest: "512"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentwire.ArgumentsFile, s.arguments("-o", "slab_chunk_max="+chunkMax))
			wantWarm(t, s.waitFor("the restart", func(status agentwire.Status) bool {
				return status.Phase == agentwire.PhaseServing && status.PID != first.PID
			}), 100)
		})
	}
}

func TestExtstoreRequiresANewPod(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	s.annotate(agentwire.ArgumentsFile, s.arguments("-o", "ext_path="+s.data+"/ext:64m"))
	status := s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	wantContains(t, "the rejection", status.ArgumentsError, "extstore")
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
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentwire.ArgumentsFile, c.text)
			status := s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
			wantContains(t, "the rejection", status.ArgumentsError, c.want)
			if status.PID != first.PID || status.Items != 100 {
				t.Errorf("memcached was changed: %+v", status)
			}
			s.annotate(agentwire.ArgumentsFile, s.arguments())
			s.waitFor("the rejection to disappear with its cause", func(status agentwire.Status) bool { return status.ArgumentsError == "" })
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
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 1000)
			s.stopContainer()
			s.annotate(agentwire.ArgumentsFile, s.arguments(c.args...))
			status := s.run()
			wantWarm(t, status, 1000)
			wantContains(t, "the rejection", status.ArgumentsError, c.rejection)
			if (status.ArgumentsError == "") != c.applied || slices.Equal(status.Arguments, first.Arguments) == c.applied {
				t.Errorf("applied %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

// Without saved items there is no dry run; the record of the last stop has the previous arguments.
func TestColdContainerFallsBackFromArgumentsThatMemcachedRejects(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	s.stopContainer()
	edit(t, s.meta(), func(string) string { return "" })
	s.annotate(agentwire.ArgumentsFile, s.arguments("-I", "1024m"))
	status := s.run()
	wantContains(t, "the rejection", status.ArgumentsError, "memcached exited unexpectedly with code")
	if strings.Contains(strings.Join(status.Arguments, " "), "1024m") {
		t.Errorf("arguments %v", status.Arguments)
	}
}

func TestRequestedRestartTriesRejectedArgumentsAgain(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	file := s.dir + "/allowed"
	memcached := s.memcached
	s.memcached = filepath.Join(s.dir, "program")
	script(t, s.memcached, `case "$*" in *"-t 2"*) test -e `+file+` || exit 1;; esac
exec `+memcached+` "$@"`)
	s.run()
	s.annotate(agentwire.ArgumentsFile, s.arguments("-t", "2"))
	s.waitFor("the rejection", func(status agentwire.Status) bool { return status.ArgumentsError != "" })
	writeFile(t, file, "")
	s.annotate(agentwire.RestartFile, "retry")
	status := s.waitFor("the restart", func(status agentwire.Status) bool {
		return status.Phase == agentwire.PhaseServing && status.Restart == "retry" && status.Start.Result == agentwire.StartWarm
	})
	if status.ArgumentsError != "" || !slices.Contains(status.Arguments, "-t") {
		t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
	}
}
