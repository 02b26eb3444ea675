package process

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const (
	oldest = "1.6.18"
	middle = "1.6.38"
)

var (
	// newest is the highest version that there is.
	newest string
	// versions are all three, oldest first.
	versions []string
	// agentPath is the agent that was built for these tests.
	agentPath string
	// memcachedDir is $MEMCACHED_DIR.
	memcachedDir string
)

func TestMain(m *testing.M) {
	status, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/process:", err)
		status = 1
	}
	os.Exit(status)
}

func testMain(m *testing.M) (int, error) {
	if os.Geteuid() != 0 {
		return 0, fmt.Errorf("these tests mount volumes and run agents under other users: run them as root")
	}
	if err := findVersions(); err != nil {
		return 0, err
	}
	var shm syscall.Statfs_t
	if err := syscall.Statfs("/dev/shm", &shm); err != nil || int64(shm.Blocks)*shm.Bsize < 1<<30 {
		return 0, fmt.Errorf("these tests keep items in /dev/shm: let it hold 1 GiB at least")
	}

	dir, err := os.MkdirTemp("", "process-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	agentPath = filepath.Join(dir, "agent")
	// As the Makefile builds it.
	build := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w -X main.version=1.2.3-test", "-o", agentPath, "./cmd/agent")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("building the agent: %w\n%s", err, out)
	}
	// The tests often wait.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// findVersions reads which versions MEMCACHED_DIR has.
func findVersions() error {
	const advice = "run make test, or eval $(make -s env)"
	memcachedDir = os.Getenv("MEMCACHED_DIR")
	if memcachedDir == "" {
		return fmt.Errorf("MEMCACHED_DIR is not set: %s", advice)
	}
	found, err := filepath.Glob(filepath.Join(memcachedDir, "*", "memcached"))
	if err != nil {
		return err
	}
	for _, path := range found {
		versions = append(versions, filepath.Base(filepath.Dir(path)))
	}
	slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	if !slices.Contains(versions, oldest) || !slices.Contains(versions, middle) || len(versions) < 3 {
		return fmt.Errorf("MEMCACHED_DIR=%s has the versions %v, and %s, %s and a newer one are needed: %s",
			memcachedDir, versions, oldest, middle, advice)
	}
	newest = versions[len(versions)-1]
	versions = []string{oldest, middle, newest}
	return nil
}

// order makes a number of a version that sorts as the version does.
func order(version string) int {
	var n int
	for _, part := range strings.SplitN(version, ".", 3) {
		digits := strings.TrimRight(part, "abcdefghijklmnopqrstuvwxyz-_")
		number, _ := strconv.Atoi(digits)
		n = n*1000 + number
	}
	return n
}

func memcachedPath(version string) string { return filepath.Join(memcachedDir, version, "memcached") }
