package process

import (
	"context"
	"strings"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/copy"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
	"github.com/memcached-operator/memcached-operator/test/internal/pods"
)

// midway runs a save or a load and does something once a share of it is done.
func midway(t *testing.T, run func(context.Context, copy.Options) (snapshotwire.Outcome, error), then func()) (snapshotwire.Outcome, error) {
	t.Helper()
	options := testOptions(t)
	type end struct {
		outcome snapshotwire.Outcome
		err     error
	}
	stopped := make(chan end, 1)
	go func() {
		outcome, err := run(t.Context(), options)
		stopped <- end{outcome, err}
	}()
	progressed := false
	pods.Eventually(func() bool {
		p := options.Progress.Report("")
		progressed = p.Items > p.TotalItems/4 && p.TotalItems > 0
		return progressed || len(stopped) > 0
	})
	if !progressed {
		t.Fatalf("no progress: %+v", options.Progress.Report(""))
	}
	then()
	e := <-stopped
	return e.outcome, e.err
}

// A shard that is restarted in place, as an upgrade does, is waited for.
func TestSnapshotOfShardThatRestartsWarm(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source, target := pods.StartWarmCache(t, version), pods.StartWarmCache(t, version)
			restart := func(c *pods.Cache) { c.StopWarm(); c.Start() }
			items := someItems(2, 20_000)
			putItems(source, items)
			bucket := memblob.OpenBucket(nil)
			task := pods.SaveTask(source)
			task.ItemsPerSecond = 10_000
			outcome, err := midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Save(ctx, bucket, task, options)
			}, func() { restart(source) })
			if err != nil || outcome.Items != int64(len(items)) {
				t.Fatalf("saved %+v of %d items, %v", outcome, len(items), err)
			}
			task = pods.LoadTask(target)
			task.ItemsPerSecond = 10_000
			outcome, err = midway(t, func(ctx context.Context, options copy.Options) (snapshotwire.Outcome, error) {
				return copy.Load(ctx, bucket, task, options)
			}, func() { restart(target) })
			if err != nil || outcome.Restored != int64(len(items)) {
				t.Fatalf("restored %+v of %d items, %v", outcome, len(items), err)
			}
			wantSameItems(t, target, source, names(items))
		})
	}
}

// An invalidated item is not saved, and its next reader is requested to renew it as if
// no client had read it.
func TestStaleItems(t *testing.T) {
	t.Parallel()
	for _, version := range pods.Tested {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			source := pods.StartCache(t, version)
			items := someItems(6, 1000)
			putItems(source, items)
			source.Talk("ms stale 3 T300\r\nold\r\nmd stale I T100\r\nms b2xk 4 b T300\r\nolds\r\nmd b2xk I b\r\n" +
				"ms renewing 1\r\nx\r\nmd renewing I\r\nmg renewing v\r\n")
			outcome := save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
			if outcome.Items != int64(len(items)) {
				t.Errorf("%+v with %d items that are not stale", outcome, len(items))
			}
			pods.WantContains(t, "the message", outcome.Message, "3 are stale")
			for _, request := range []string{"mg stale v\r\n", "mg b2xk b v\r\n"} {
				if answer := source.Talk(request); !strings.Contains(answer, " X") || !strings.Contains(answer, " W") {
					t.Errorf("after the save, the answer to %q is %q", request, answer)
				}
			}
			// Another client renews this one already.
			if answer := source.Talk("mg renewing v\r\n"); !strings.Contains(answer, " Z") {
				t.Errorf("the answer about an item that is renewed is %q", answer)
			}
		})
	}
}

// The order of the LRU, by which memcached evicts, is not that of a save.
func TestSaveDoesNotCountAsAccess(t *testing.T) {
	t.Parallel()
	source := pods.StartCache(t, pods.Newest)
	putItems(source, map[string]entry{"a": {"1", 0, -1}})
	save(t, memblob.OpenBucket(nil), pods.SaveTask(source))
	if answer := source.Talk("mg a h u\r\n"); answer != "HD h0\r\n" {
		t.Errorf("after a save, %q", answer)
	}
}
