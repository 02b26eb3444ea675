package host

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestFailedUpdateChangesAtMostOneShardAndRollsItBack(t *testing.T) {
	const size = 5000
	rest.events.Add(1)
	t.Cleanup(rest.events.Done)
	t.Parallel()
	s := newSpace(t)
	newest := versions[len(versions)-1]
	image := func(reference string) func() v1beta1.MemcachedSpec {
		return func() v1beta1.MemcachedSpec { return suite.Small(2, suite.Image(reference)) }
	}
	late := s.named("late", newest)
	t.Run("changes", func(t *testing.T) {
		for name, change := range map[string]suite.Failing{
			"image-that-comes-late": {
				Spec: image(late), Reason: v1beta1.ReasonImageCannotBePulled, Words: []string{late},
				Fix: func(s *suite.Space, name string) {
					(&space{s}).load(late, "")
					(&space{s}).retry(name)
				},
			},
			"nothing-in-the-image": {
				Spec: image("docker.io/library/busybox:1"), Reason: v1beta1.ReasonImageUnusable, Words: []string{"no memcached in this image", "no shard was changed"},
			},
			"arguments-that-memcached-rejects": {
				Spec: func() v1beta1.MemcachedSpec {
					return suite.Small(2, suite.Arguments("-o", "hash_algorithm=nonsense"))
				},
				Reason: v1beta1.ReasonUpdateFailed, Words: []string{"shard -0, which was rolled back", "hash_algorithm"}, Tried: true,
				Fix: func(s *suite.Space, name string) {
					s.Apply(name, suite.Small(2, suite.Arguments("-o", "hash_algorithm=murmur3")))
				},
			},
			"other-version-than-its-tag": {
				Spec: image(s.load(s.named("mislabelled", "1.6.44"), "")), Reason: v1beta1.ReasonVersionMismatch, Words: []string{"contains memcached " + newest, "its tag says 1.6.44"},
			},
			"crash-where-the-items-are": {
				Spec:   image(s.load(s.named("crashing", newest), `case " $* " in *" -e "*) echo "out of luck" >&2; exit 3;; esac`)),
				Reason: v1beta1.ReasonUpdateFailed, Words: []string{"shard -0, which was rolled back", "out of luck"}, Tried: true, Restarts: true,
			},
			"start-without-the-items": {
				Spec:   image(s.load(s.named("forgetful", newest), `case " $* " in *" -e "*) /bin/busybox rm /var/lib/memcached/memory.meta;; esac`)),
				Reason: v1beta1.ReasonUpdateFailed, Words: []string{"shard -0, which was rolled back", "started empty"}, Tried: true, Restarts: true, LosesItems: true,
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.In(t).Fails(name, size, change)
			})
		}
	})
	s.NoPreflightPods()
}

// retry has an update tried again that was stopped.
func (s *space) retry(name string) {
	s.Helper()
	m, err := k.Memcached(s.Ctx, s.Key(name))
	s.Must(err)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1beta1.AnnotationRetry, time.Now().Format(time.RFC3339))
	s.Must(k.Patch(s.Ctx, m, client.RawPatch("application/merge-patch+json", patch), suite.Owner))
}

// named returns the name of an image that says that it holds a version, and that no
// other test and no other run has.
func (s *space) named(name, version string) string {
	sum := sha256.Sum256([]byte(s.Namespace))
	return fmt.Sprintf("docker.io/library/memcached-%s:%s-%x", name, version, sum[:4])
}

// load puts an image of the newest memcached into the local cluster's registry whose
// program first does what a line of shell says. It returns the name.
func (s *space) load(reference, line string) string {
	s.Helper()
	from := os.Getenv("MEMCACHED_DIR")
	dir := s.TempDir()
	s.Must(os.CopyFS(dir, os.DirFS(filepath.Join(from, versions[len(versions)-1], "root"))))
	program := filepath.Join(dir, "usr/bin/memcached")
	s.Must(os.Rename(program, program+".real"))
	s.Must(os.WriteFile(program, []byte("#!/bin/busybox sh\n"+line+"\nexec /usr/bin/memcached.real \"$@\"\n"), 0o755))
	busybox, err := os.ReadFile(filepath.Join(from, ".busybox"))
	s.Must(err)
	s.Must(os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	s.Must(os.WriteFile(filepath.Join(dir, "bin/busybox"), busybox, 0o755))
	_, err = cluster.Local(s.Ctx, "load", reference, "--dir", dir)
	s.Must(err)
	return reference
}
