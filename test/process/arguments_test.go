package process

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// What memcached takes up its items with, and what it refuses them with. Each
// case is asked of memcached itself and of the agent, whose verdict must be the same.
var changes = []struct {
	name   string
	args   []string
	refuse bool
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
	{"no slab reassignment, taken back", []string{"-o", "no_slab_reassign,slab_reassign"}, false},
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

func TestWhichChangesMemcachedRefuses(t *testing.T) {
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
					want := change.refuse || version == oldest && change.args[len(change.args)-1] == "slab_chunk_max=512"
					if refused := second.count() == 0; refused != want {
						t.Errorf("refused is %v, want %v", refused, want)
					}
				})
			}
		})
	}
}

func TestTheAgentKnowsWhichChangesMemcachedRefuses(t *testing.T) {
	for _, change := range changes {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentapi.ArgumentsFile, s.arguments(change.args...))
			if change.refuse {
				status := s.waitFor("the refusal", func(status agentapi.Status) bool { return status.ArgumentsError != "" })
				wantContains(t, "the refusal", status.ArgumentsError, "they need a replacement of the pod")
				if status.PID != first.PID || status.Items != 100 || !slices.Equal(status.Arguments, first.Arguments) {
					t.Errorf("memcached was touched: %+v", status)
				}
				return
			}
			status := s.waitFor("the restart", func(status agentapi.Status) bool {
				return status.Phase == agentapi.PhaseServing && status.PID != first.PID
			})
			wantWarm(t, status, 100)
			if status.ArgumentsError != "" || len(status.Arguments) != len(first.Arguments)+len(change.args) {
				t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

// What an option means can change with the version: slab_chunk_max was in bytes.
func TestTheAgentKnowsTheUnitOfTheVersion(t *testing.T) {
	t.Parallel()
	for version, chunkMax := range map[string]string{oldest: "524288", newest: "512"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			s.memcached = memcachedPath(version)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentapi.ArgumentsFile, s.arguments("-o", "slab_chunk_max="+chunkMax))
			wantWarm(t, s.waitFor("the restart", func(status agentapi.Status) bool {
				return status.Phase == agentapi.PhaseServing && status.PID != first.PID
			}), 100)
		})
	}
}

func TestExtstoreNeedsAReplacement(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	s.annotate(agentapi.ArgumentsFile, s.arguments("-o", "ext_path="+s.data+"/ext:64m"))
	status := s.waitFor("the refusal", func(status agentapi.Status) bool { return status.ArgumentsError != "" })
	wantContains(t, "the refusal", status.ArgumentsError, "extstore")
}

func TestArgumentsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":                {"-m 64", "the arguments are not a JSON array of strings"},
		"JSON of another kind":    {`{"m":64}`, "the arguments are not a JSON array of strings"},
		"two arrays":              {`["-v"]["-v"]`, "something follows the array"},
		"a NUL byte":              {`["-P","a\u0000b"]`, "NUL"},
		"the agent's own file":    {`["-e","/tmp/x"]`, "the option -e is not possible here"},
		"the same, long":          {`["--memory-file=/tmp/x"]`, "the option -e is not possible here"},
		"a daemon":                {`["-vd"]`, "the option -d is not possible here"},
		"an option of no version": {`["-q"]`, "memcached does not start with them"},
		"a suboption of none":     {`["-o","nonsense"]`, "memcached does not start with them"},
		"a number out of bounds":  {`["-t","0"]`, "Number of threads must be greater than 0"},
		"too few connections":     {`["-c","5"]`, "memcached does not start with them"},
		"a missing certificate":   {`["-Z"]`, "memcached does not start with them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 100)
			s.annotate(agentapi.ArgumentsFile, c.text)
			status := s.waitFor("the refusal", func(status agentapi.Status) bool { return status.ArgumentsError != "" })
			wantContains(t, "the refusal", status.ArgumentsError, c.want)
			if status.PID != first.PID || status.Items != 100 {
				t.Errorf("memcached was touched: %+v", status)
			}
			s.annotate(agentapi.ArgumentsFile, s.arguments())
			s.waitFor("the refusal to go with its cause", func(status agentapi.Status) bool { return status.ArgumentsError == "" })
		})
	}
}

func TestAContainerThatStartsAgainWithOtherArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		applied bool
		refusal string
	}{
		"goes over to those that fit":                 {[]string{"-t", "2"}, true, ""},
		"keeps the items rather than the new memory":  {[]string{"-m", "96"}, false, "they need a replacement of the pod, since memcached could not take up its items with them: the memory limit (-m)"},
		"keeps the items rather than nonsense":        {[]string{"-q"}, false, "memcached does not start with them"},
		"keeps the items rather than its own options": {[]string{"-e", "/tmp/x"}, false, "the option -e is not possible here"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShard(t)
			first := s.run()
			fill(t, s.address(), 1000)
			s.stopContainer()
			s.annotate(agentapi.ArgumentsFile, s.arguments(c.args...))
			status := s.run()
			wantWarm(t, status, 1000)
			wantContains(t, "the refusal", status.ArgumentsError, c.refusal)
			if (status.ArgumentsError == "") != c.applied || slices.Equal(status.Arguments, first.Arguments) == c.applied {
				t.Errorf("applied %v, %q", status.Arguments, status.ArgumentsError)
			}
		})
	}
}

// Nothing is saved, so the new arguments are simply tried; those of the last stop are known.
func TestAColdContainerGoesBackFromArgumentsThatMemcachedRefuses(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	s.stopContainer()
	edit(t, s.meta(), func(string) string { return "" })
	s.annotate(agentapi.ArgumentsFile, s.arguments("-I", "1024m"))
	status := s.run()
	wantContains(t, "the refusal", status.ArgumentsError, "memcached ended by itself with status")
	if strings.Contains(strings.Join(status.Arguments, " "), "1024m") {
		t.Errorf("arguments %v", status.Arguments)
	}
}

func TestARestartThatWasAskedForTriesTheRefusedArgumentsAgain(t *testing.T) {
	t.Parallel()
	s := newShard(t)
	s.run()
	file := s.dir + "/passwords"
	s.annotate(agentapi.ArgumentsFile, s.arguments("-Y", file))
	s.waitFor("the refusal", func(status agentapi.Status) bool { return status.ArgumentsError != "" })
	writeFile(t, file, "someone:secret\n")
	s.annotate(agentapi.RestartFile, "mended")
	status := s.waitFor("the restart", func(status agentapi.Status) bool {
		return status.Phase == agentapi.PhaseServing && status.Restart == "mended" && status.Start.Result == agentapi.StartWarm
	})
	if status.ArgumentsError != "" || !slices.Contains(status.Arguments, file) {
		t.Errorf("arguments %v, %q", status.Arguments, status.ArgumentsError)
	}
}
