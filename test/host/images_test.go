package host

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

func TestFailedUpdateChangesAtMostOneShardAndRollsItBack(t *testing.T) {
	rest.events.Add(1)
	t.Cleanup(rest.events.Done)
	t.Parallel()
	s := newSpace(t)
	newest := versions[len(versions)-1]
	image := func(reference string) v1beta1.MemcachedSpec { return suite.Small(2, suite.Image(reference)) }
	late := s.named("late", newest)
	t.Run("changes", func(t *testing.T) {
		for name, change := range map[string]failing{
			"image-that-comes-late": {
				spec: image(late), reason: v1beta1.ReasonImageCannotBePulled, words: []string{late},
				fix: func(s *space, name string) {
					s.load(late, "")
					m, err := k.Memcached(s.Ctx, s.Key(name))
					s.Must(err)
					s.Must(k.Annotate(s.Ctx, m, v1beta1.AnnotationRetry, time.Now().Format(time.RFC3339)))
				},
			},
			"nothing-in-the-image": {
				spec: image("docker.io/library/busybox:1"), reason: v1beta1.ReasonImageUnusable, words: []string{"no memcached in this image", "no shard was changed"},
			},
			"arguments-that-memcached-rejects": {
				spec:   suite.Small(2, suite.Arguments("-o", "hash_algorithm=nonsense")),
				reason: v1beta1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "hash_algorithm"}, tried: true,
				fix: func(s *space, name string) {
					s.Apply(name, suite.Small(2, suite.Arguments("-o", "hash_algorithm=murmur3")))
				},
			},
			"other-version-than-its-tag": {
				spec: image(s.load(s.named("mislabelled", "1.6.44"), "")), reason: v1beta1.ReasonVersionMismatch, words: []string{"contains memcached " + newest, "its tag says 1.6.44"},
			},
			"crash-where-the-items-are": {
				spec:   image(s.load(s.named("crashing", newest), `case " $* " in *" -e "*) echo "out of luck" >&2; exit 3;; esac`)),
				reason: v1beta1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "out of luck"}, tried: true, restarts: true,
			},
			"start-without-the-items": {
				spec:   image(s.load(s.named("forgetful", newest), `case " $* " in *" -e "*) /bin/busybox rm /var/lib/memcached/memory.meta;; esac`)),
				reason: v1beta1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "started empty"}, tried: true, restarts: true, losesItems: true,
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.in(t).fails(name, change)
			})
		}
	})
	s.NoPreflightPods()
}

// failing is a change that must not get past the first shard.
type failing struct {
	spec   v1beta1.MemcachedSpec
	reason string
	// words of the message.
	words []string
	// tried: it is known only when it was tried on the first shard, and restarts that
	// its container is restarted for it, there and back.
	tried, restarts bool
	// losesItems of that shard, as nothing can be done about it.
	losesItems bool
	// fix repairs it; the former spec is applied when it is nil.
	fix func(s *space, name string)
}

// fails applies a change that fails to two shards that contain items, and fixes it.
func (s *space) fails(name string, change failing) {
	s.Helper()
	const size = 5000
	s.Serve(name, suite.Small(2))
	first, second := s.Written(name, 0, size), s.Written(name, 1, size)
	before := s.Lives(name)
	h := s.Follow(name)
	s.Apply(name, change.spec)
	m, sentence := s.Degraded(name, change.reason)
	s.Log(sentence)
	for _, word := range change.words {
		if word = strings.ReplaceAll(word, "shard -", "shard "+name+"-"); !strings.Contains(sentence, word) {
			s.Errorf("the message does not contain %q", word)
		}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionProgressing); c.Reason == v1beta1.ReasonUpdatingShard {
		s.Errorf("Progressing is %s: %s", c.Reason, c.Message)
	}
	lives := before
	if change.tried {
		shard := cluster.ShardName(name, 0)
		s.Event(name, v1beta1.EventShardRolledBack, shard)
		lives = s.rolledBack(name, shard, before, change.restarts)
	}
	s.Await(name, "all shards serve", func(m *v1beta1.Memcached) error {
		if m.Status.ReadyShards != 2 || m.Status.Phase != v1beta1.PhaseBlocked {
			return fmt.Errorf("%d do, phase %s", m.Status.ReadyShards, m.Status.Phase)
		}
		// The agent reports the start a moment after the kubelet reports a ready pod.
		if start := s.Shard(m, 0).StartResult; change.restarts && !change.losesItems && start != v1beta1.StartWarm {
			return fmt.Errorf("the shard that was rolled back is %s", start)
		}
		return nil
	})
	s.Event(name, change.reason)
	s.Untouched(name, lives)
	s.Holds(second)
	if !change.losesItems {
		s.Address(name, 0) // answers again
		s.Holds(first)
	}
	all := h.End()
	h.NeverTwo(all)
	if !change.tried && all.Changed() != nil {
		s.Errorf("shards %v were changed", all.Changed())
	}

	if change.fix != nil {
		change.fix(s, name)
		s.Updated(name)
	} else {
		s.Apply(name, suite.Small(2))
		s.Updated(name)
		s.Untouched(name, lives)
	}
	s.Event(name, v1beta1.ReasonAsExpected)
	s.Address(name, 1) // answers again
	s.Holds(second)
}

// rolledBack waits until a shard is in the same pod what it was before, and returns
// the lives of all. A container that crashes may be started more than once.
func (s *space) rolledBack(name, shardName string, before map[string]cluster.Life, restarts bool) map[string]cluster.Life {
	s.Helper()
	was := before[shardName]
	lives := maps.Clone(before)
	s.Eventually("shard "+shardName+" is rolled back", func(context.Context) error {
		pod := s.Pods(name)[shardName]
		now, image := cluster.LifeOf(pod), pod.Status.ContainerStatuses[0].Image
		if now.Pod != was.Pod || !shard.IsReady(&pod) || restarts && now.Restarts < was.Restarts+2 || !restarts && now != was || image != "docker.io/library/memcached:"+defaultVersion {
			return fmt.Errorf("it was %+v and is %+v, ready %t, with image %s", was, now, shard.IsReady(&pod), image)
		}
		lives[shardName] = now
		return nil
	})
	return lives
}

// named returns the name of an image that says that it holds a version, and that no other test and no other run has.
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
