package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// TestResultIsSameWhereverOperatorIsKilled kills the operator after each
// of its writes. The result must be that of an operator that was not killed, without another pod.
func TestResultIsSameWhereverOperatorIsKilled(t *testing.T) {
	for name, test := range map[string]struct {
		given, when func(*world)
		want        []string
	}{
		"a backup": {
			given: func(w *world) { w.memcached("cache", 2) },
			when:  func(w *world) { w.create("MemcachedBackup", "nightly", toGo) },
			want:  []string{"pods map[save:1]", "backup nightly: Complete Succeeded, 100 items", "Job of nightly: expires true", "snapshots 1"},
		},
		"a backup that fails": {
			given: func(w *world) {
				w.memcached("cache", 2)
				w.jobs.Ends = map[snapshotwire.Action][]simtest.End{snapshotwire.ActionSave: {{Exit: snapshotwire.ExitFinal, Outcome: &snapshotwire.Outcome{Reason: v1beta1.ReasonStoreFull, Message: "full", Final: true}}}}
			},
			when: func(w *world) { w.create("MemcachedBackup", "nightly", toClaim) },
			want: []string{"pods map[save:1]", "backup nightly: Failed StoreFull", "snapshots 0"},
		},
		"a backup whose pod cannot start": {
			given: func(w *world) {
				w.memcached("cache", 2)
				w.jobs.Stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "no secret"}
			},
			when: func(w *world) {
				w.create("MemcachedBackup", "nightly", toClaim)
				w.converge()
				w.clock.Step(5 * time.Minute)
			},
			want: []string{"pods map[save:1]", "backup nightly: Failed JobCannotStart", "snapshots 0"},
		},
		"a restore of a snapshot": {
			given: func(w *world) { w.memcached("fresh", 2) },
			when:  func(w *world) { w.create("MemcachedRestore", "fill", fromClaim) },
			want:  []string{"pods map[load:1]", "restore fill: Complete Succeeded, 90 restored", "Job of fill: expires true"},
		},
		"a deletion": {
			given: func(w *world) { w.backedUp(1) },
			when:  func(w *world) { w.delete(w.backup("nightly")) },
			want:  []string{"pods map[delete:1 save:1]", "snapshots 0"},
		},
		"a deletion while it runs": {
			given: func(w *world) {
				w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
				w.backedUp(1)
			},
			when: func(w *world) { w.delete(w.backup("nightly")) },
			want: []string{"pods map[delete:1 save:1]", "snapshots 0"},
		},
		"a scheduled run": {
			given: func(w *world) {
				w.memcached("cache", 1)
				w.create("MemcachedScheduledBackup", "nightly", `{schedule: "30 12 * * *", backupTemplate: {spec: `+toClaim+`}}`)
				w.converge()
				w.clock.Step(30 * time.Minute)
			},
			when: func(*world) {},
			want: []string{"pods map[save:1]", "snapshots 1", "schedule nightly: active []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(lives int) (string, int, bool) {
				w := newWorld(t)
				test.given(w)
				before := w.writes
				if lives > 0 {
					w.killAfter(lives)
				}
				test.when(w)
				w.converge()
				return w.end(), w.writes - before, w.killed
			}
			want, writes, _ := run(0)
			for _, line := range test.want {
				if !strings.Contains(want, line) {
					t.Fatalf("no %q in:\n%s", line, want)
				}
			}
			for lives := 1; lives <= writes; lives++ {
				got, _, killed := run(lives)
				if !killed {
					t.Errorf("there were %d writes, and write %d is missing now", writes, lives)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("killed after write %d of %d the result differs (-want +got):\n%s", lives, writes, diff)
				}
			}
			t.Logf("killed after each of %d writes", writes)
		})
	}
}

// end summarizes all objects, without what differs from run to run.
func (w *world) end() string {
	lines := []string{fmt.Sprintf("pods %v", w.jobs.Created), fmt.Sprintf("snapshots %d", len(w.jobs.Snapshots))}
	names := map[types.UID]string{}
	for _, b := range simtest.All[*v1beta1.MemcachedBackup](w.admin) {
		names[b.UID] = b.Name
		line := fmt.Sprintf("backup %s: %s %s", b.Name, b.Status.Phase, b.Status.Reason())
		if b.Status.Snapshot != nil {
			line += fmt.Sprintf(", %d items", b.Status.Snapshot.Items)
		}
		lines = append(lines, line+fmt.Sprintf(", finalizers %v", b.Finalizers))
	}
	for _, r := range simtest.All[*v1beta1.MemcachedRestore](w.admin) {
		names[r.UID] = r.Name
		lines = append(lines, fmt.Sprintf("restore %s: %s %s, %d restored", r.Name, r.Status.Phase, r.Status.Reason(), r.Status.Restored))
	}
	for _, s := range simtest.All[*v1beta1.MemcachedScheduledBackup](w.admin) {
		lines = append(lines, fmt.Sprintf("schedule %s: active %v, last %s at %v", s.Name, s.Status.Active, s.Status.LastBackupName, s.Status.LastScheduleTime))
	}
	for _, job := range simtest.All[*batchv1.Job](w.admin) {
		if name := names[job.OwnerReferences[0].UID]; name != "" { // others are the garbage collector's
			lines = append(lines, fmt.Sprintf("Job of %s: expires %t", name, job.Spec.TTLSecondsAfterFinished != nil))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
