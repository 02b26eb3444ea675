// Package pods starts what a shard's pod runs, the agent and memcached, as processes of this machine, and memcached alone.
//
// They run as root: they mount small volumes, and run agents as other users, as PID 1, with a read-only root file system.
// MEMCACHED_DIR has one directory a version, each with an executable memcached.
package pods

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/blang/semver/v4"
)

// The versions besides the newest one.
const (
	Oldest = "1.6.18"
	Middle = "1.6.38"
	// Version is what the programs that are built for the tests print.
	Version = "1.2.3-test"
)

var (
	// Newest is the highest version that there is.
	Newest string
	// Versions are all three, oldest first.
	Versions []string
	// Tested are the versions with which a test repeats itself: the newest one, and all three if TEST_EXHAUSTIVE is set.
	Tested []string
	// AgentPath is the agent that was built for these tests.
	AgentPath string
	// memcachedDir is $MEMCACHED_DIR.
	memcachedDir string
)

// Exhaustive is whether TEST_EXHAUSTIVE is set: tests then repeat themselves with all versions and more often.
func Exhaustive() bool { return os.Getenv("TEST_EXHAUSTIVE") != "" }

// Main is the TestMain of a package whose tests also use the programs that these environment variables name.
func Main(m *testing.M, variables ...string) {
	status, err := run(m, variables)
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests can't run:", err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M, variables []string) (int, error) {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New(`they mount volumes and run agents under other users: run them as root, or with -exec "unshare --user --map-root-user --map-auto --mount"`))
	}
	var shm syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &shm); err != nil || int64(shm.Blocks)*shm.Bsize < 1<<30 {
		missing = append(missing, errors.New("they keep items in /dev/shm: let it hold 1 GiB at least"))
	}
	missing = append(missing, findVersions())
	for _, variable := range variables {
		if os.Getenv(variable) == "" {
			missing = append(missing, fmt.Errorf(`%s is not set: run eval "$(bin/cluster env process peers)"`, variable))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "pods-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	AgentPath = filepath.Join(dir, "agent")
	if err := build(AgentPath, "./cmd/agent", " -X runtime.godebugDefault=disablethp=1", "-tags", "nethttpomithttp2"); err != nil {
		return 0, err
	}
	// The tests often wait. A -parallel of the command line is parsed later.
	if err := flag.Set("test.parallel", "8"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// build builds a program of the operator's module as the Makefile does.
func build(path, program, link string, flags ...string) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/memcached-operator/memcached-operator").Output()
	if err != nil {
		return fmt.Errorf("finding the operator's module: %w", err)
	}
	command := exec.Command("go", append(append([]string{"build", "-trimpath", "-ldflags", "-s -w -X main.version=" + Version + link}, flags...), "-o", path, program)...)
	command.Dir = strings.TrimSpace(string(root))
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program, err, out)
	}
	return nil
}

// SnapshotProgram returns the path of the program of the Jobs, which is built once for the tests that need it.
var SnapshotProgram = sync.OnceValues(func() (string, error) {
	program := filepath.Join(filepath.Dir(AgentPath), "snapshot")
	return program, build(program, "./cmd/snapshot", "")
})

// findVersions reads which versions MEMCACHED_DIR has.
func findVersions() error {
	const advice = `run eval "$(bin/cluster env process)"`
	memcachedDir = os.Getenv("MEMCACHED_DIR")
	if memcachedDir == "" {
		return fmt.Errorf("MEMCACHED_DIR is not set: %s", advice)
	}
	found, err := filepath.Glob(filepath.Join(memcachedDir, "*", "memcached"))
	if err != nil {
		return err
	}
	for _, path := range found {
		Versions = append(Versions, filepath.Base(filepath.Dir(path)))
	}
	slices.SortFunc(Versions, func(a, b string) int { return semver.MustParse(a).Compare(semver.MustParse(b)) })
	if !slices.Contains(Versions, Oldest) || !slices.Contains(Versions, Middle) || len(Versions) < 3 {
		return fmt.Errorf("MEMCACHED_DIR=%s has the versions %v, and %s, %s and a newer one are needed: %s", memcachedDir, Versions, Oldest, Middle, advice)
	}
	Newest = Versions[len(Versions)-1]
	Versions = []string{Oldest, Middle, Newest}
	Tested = []string{Newest}
	if Exhaustive() {
		Tested = Versions
	}
	return nil
}

// MemcachedPath returns the program of a version.
func MemcachedPath(version string) string { return filepath.Join(memcachedDir, version, "memcached") }

// WithEach runs a parallel test with each of the versions.
func WithEach(t *testing.T, versions []string, test func(t *testing.T, version string)) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}
