package e2e

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	memcachedac "github.com/memcached-operator/memcached-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// backWithin is how long a shard on which a change failed may be unavailable in all.
const backWithin = time.Minute

// failing is a change that must not get past the first shard.
type failing struct {
	spec   func() *memcachedac.MemcachedSpecApplyConfiguration
	reason string
	// words of the message.
	words []string
	// tried: it is known only when it was tried on the first shard, and restarts that
	// its container is restarted for it, there and back.
	tried, restarts bool
	// losesItems of that shard, as nothing can be done about it.
	losesItems bool
	// fix repairs it; the former spec is applied when it is nil.
	fix func(*space, string)
}

func TestFailedUpdateChangesAtMostOneShardAndRollsItBack(t *testing.T) {
	t.Parallel()
	const size = 5000
	s := newSpace(t)
	newest := versions[len(versions)-1]
	image := func(reference string) func() *memcachedac.MemcachedSpecApplyConfiguration {
		return func() *memcachedac.MemcachedSpecApplyConfiguration { return small(2).WithImage(reference) }
	}
	late := s.named("late", newest)
	t.Run("changes", func(t *testing.T) {
		for name, change := range map[string]failing{
			"version-that-is-not-there": {
				spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return small(2).WithVersion("1.6.999")
				},
				reason: v1alpha1.ReasonImageCannotBePulled, words: []string{"memcached:1.6.999", "no shard was changed"},
			},
			"image-that-comes-late": {
				spec: image(late), reason: v1alpha1.ReasonImageCannotBePulled, words: []string{late},
				fix: func(s *space, name string) {
					s.load(late, "")
					s.retry(name)
				},
			},
			"not-memcached": {
				spec: image("docker.io/library/not-memcached:1"), reason: v1alpha1.ReasonImageUnusable, words: []string{"is not memcached", "no shard was changed"},
			},
			"nothing-in-the-image": {
				spec: image("docker.io/library/empty:1"), reason: v1alpha1.ReasonImageUnusable, words: []string{"no memcached in this image"},
			},
			"other-version-than-its-tag": {
				spec: image(s.load(s.named("mislabelled", "1.6.44"), "")), reason: v1alpha1.ReasonVersionMismatch, words: []string{"contains memcached " + newest, "its tag says 1.6.44"},
			},
			"arguments-that-memcached-rejects": {
				spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return small(2).WithExtraArgs("-o", "hash_algorithm=nonsense")
				},
				reason: v1alpha1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "hash_algorithm"}, tried: true,
				fix: func(s *space, name string) {
					s.apply(name, small(2).WithExtraArgs("-o", "hash_algorithm=murmur3"))
				},
			},
			"version-that-rejects-its-arguments": {
				spec: func() *memcachedac.MemcachedSpecApplyConfiguration {
					return small(2).WithVersion(versions[0]).WithExtraArgs("-o", "hash_algorithm=nonsense")
				},
				reason: v1alpha1.ReasonImageUnusable, words: []string{"does not start with its arguments", "hash_algorithm"},
			},
			"crash-where-the-items-are": {
				spec:   image(s.load(s.named("crashing", newest), `case " $* " in *" -e "*) echo "out of luck" >&2; exit 3;; esac`)),
				reason: v1alpha1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "out of luck"}, tried: true, restarts: true,
			},
			"start-without-the-items": {
				spec:   image(s.load(s.named("forgetful", newest), `case " $* " in *" -e "*) /bin/busybox rm /var/lib/memcached/memory.meta;; esac`)),
				reason: v1alpha1.ReasonUpdateFailed, words: []string{"shard -0, which was rolled back", "started empty"}, tried: true, restarts: true, losesItems: true,
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.in(t).fails(name, size, change)
			})
		}
	})
	s.noPreflightPods()
}

func TestOnItemLossContinueUpdatesAllShards(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.apply("cache", small(2))
	s.available("cache")
	before := s.lives("cache")
	for ordinal := range 2 {
		s.written("cache", ordinal, 100)
	}
	image := s.forgetful()
	s.apply("cache", small(2).WithImage(image).WithUpdateStrategy(memcachedac.UpdateStrategy().WithOnItemLoss(v1alpha1.ItemLossContinue)))
	m := s.updated("cache")
	s.restarted("cache", before, map[string]int32{"cache-0": 1, "cache-1": 1})
	for ordinal := range 2 {
		if shard := s.shard(m, ordinal); shard.Start != v1alpha1.StartCold || shard.Items != 0 {
			t.Errorf("the shard's status is %+v", shard)
		}
		s.event("cache", v1alpha1.EventShardStartedEmpty, cluster.ShardName("cache", ordinal))
	}
}

// fails applies a change that fails to two shards that contain items, and fixes it.
func (s *space) fails(name string, size int, change failing) {
	s.Helper()
	s.apply(name, small(2))
	s.available(name)
	first, second := s.written(name, 0, size), s.written(name, 1, size)
	before := s.lives(name)
	h := s.follow(name)
	s.apply(name, change.spec())
	m, sentence := s.degraded(name, change.reason)
	s.Log(sentence)
	for _, word := range change.words {
		if word = strings.ReplaceAll(word, "shard -", "shard "+name+"-"); !strings.Contains(sentence, word) {
			s.Errorf("the message does not contain %q", word)
		}
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionProgressing); c.Reason == v1alpha1.ReasonUpdatingShard {
		s.Errorf("Progressing is %s: %s", c.Reason, c.Message)
	}
	lives := before
	if change.tried {
		shard := cluster.ShardName(name, 0)
		s.event(name, v1alpha1.EventShardRolledBack, shard)
		lives = s.rolledBack(name, shard, before, change.restarts)
	}
	m = s.await(name, "all shards serve", func(m *v1alpha1.Memcached) error {
		if m.Status.Ready != "2/2" || m.Status.Phase != v1alpha1.PhaseBlocked {
			return fmt.Errorf("%s do, phase %s", m.Status.Ready, m.Status.Phase)
		}
		return nil
	})
	s.event(name, change.reason)
	s.untouched(name, lives)
	s.holds(second)
	if !change.losesItems {
		s.address(name, 0) // answers again
		_, err := first.Keep(share)
		s.must(err)
		if start := s.shard(m, 0).Start; change.restarts && start != v1alpha1.StartWarm {
			s.Errorf("the shard that was rolled back is %s", start)
		}
	}
	all := h.end()
	h.neverTwo(all)
	for _, out := range all.outages() {
		s.Logf("%s was unavailable for %s", out.shard, out.took.Round(10*time.Millisecond))
		if out.shard != cluster.ShardName(name, 0) || !change.tried || out.took > backWithin {
			s.Errorf("%s was unavailable for %s", out.shard, out.took)
		}
	}
	if !change.tried && all.changed() != nil {
		s.Errorf("shards %v were changed", all.changed())
	}

	if change.fix != nil {
		change.fix(s, name)
		s.updated(name)
	} else {
		s.apply(name, small(2))
		s.updated(name)
		s.untouched(name, lives)
	}
	s.event(name, v1alpha1.ReasonAsExpected)
	s.address(name, 1) // answers again
	_, err := second.Keep(share)
	s.must(err)
}

// rolledBack waits until a shard is in the same pod what it was before, and returns
// the lives of all. A container that crashes may be started more than once.
func (s *space) rolledBack(name, shard string, before map[string]cluster.Life, restarts bool) map[string]cluster.Life {
	s.Helper()
	was := before[shard]
	lives := maps.Clone(before)
	s.eventually("shard "+shard+" is rolled back", func(context.Context) error {
		pod := s.pods(name)[shard]
		now, image := cluster.LifeOf(pod), pod.Status.ContainerStatuses[0].Image
		if now.Pod != was.Pod || !isReady(pod) || restarts && now.Restarts < was.Restarts+2 || !restarts && now != was || image != "docker.io/library/memcached:"+defaultVersion {
			return fmt.Errorf("it was %+v and is %+v, ready %t, with image %s", was, now, isReady(pod), image)
		}
		lives[shard] = now
		return nil
	})
	return lives
}

// retry has an update tried again that was stopped.
func (s *space) retry(name string) {
	s.Helper()
	m, err := k.Memcached(s.ctx, s.key(name))
	s.must(err)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetry, time.Now().Format(time.RFC3339))
	s.must(k.Patch(s.ctx, m, client.RawPatch("application/merge-patch+json", patch), owner))
}

// named returns the name of an image that says that it holds a version, and that no
// other test and no other run has.
func (s *space) named(name, version string) string {
	sum := sha256.Sum256([]byte(s.namespace))
	return fmt.Sprintf("docker.io/library/memcached-%s:%s-%x", name, version, sum[:4])
}

// forgetful returns an image whose memcached does not find what was saved for it.
func (s *space) forgetful() string {
	s.Helper()
	return s.load(s.named("forgetful", versions[len(versions)-1]), `case " $* " in *" -e "*) /bin/busybox rm -f /var/lib/memcached/memory.meta;; esac`)
}

// load puts an image of the newest memcached into the local cluster's registry whose
// program first does what a line of shell says. It returns the name.
func (s *space) load(reference, line string) string {
	s.Helper()
	from := os.Getenv("MEMCACHED_DIR")
	dir := s.TempDir()
	s.must(os.CopyFS(dir, os.DirFS(filepath.Join(from, versions[len(versions)-1], "root"))))
	program := filepath.Join(dir, "usr/bin/memcached")
	s.must(os.Rename(program, program+".real"))
	s.must(os.WriteFile(program, []byte("#!/bin/busybox sh\n"+line+"\nexec /usr/bin/memcached.real \"$@\"\n"), 0o755))
	busybox, err := os.ReadFile(filepath.Join(from, ".busybox"))
	s.must(err)
	s.must(os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	s.must(os.WriteFile(filepath.Join(dir, "bin/busybox"), busybox, 0o755))
	_, err = cluster.Local(s.ctx, "load", reference, "--dir", dir)
	s.must(err)
	return reference
}
