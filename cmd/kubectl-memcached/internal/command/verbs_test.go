package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// createPods creates the pods of cache.
func (w *world) createPods() {
	w.t.Helper()
	for _, name := range []string{"cache-0-a", "cache-1-b"} {
		if err := w.api.Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// annotation returns one of a pod.
func (w *world) annotation(pod, name string) string {
	return simtest.Get[*corev1.Pod](w.api, pod).Annotations[name]
}

const stamped = "1795780800" // now

func TestRestartWaitsForEachShard(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.createPods()
	w.pause = func(look int) bool {
		pods := []string{"cache-0-a", "cache-1-b"}
		shard := (look - 1) / 2 // each is ready at the second look
		if got := w.annotation(pods[1], v1beta1.AnnotationRestart); (got != "") != (shard == 1) {
			t.Errorf("look %d: the second shard has the annotation %q", look, got)
		}
		s := &m.Status.Shards[shard]
		s.RestartAnnotation, s.Ready = w.annotation(pods[shard], v1beta1.AnnotationRestart), look%2 == 0
		s.StartResult, s.Items, s.ItemsBefore = v1beta1.StartWarm, 999, 1000
		w.report(m)
		return look < 10
	}
	w.want(w.run("restart", "cache", "--all"), 0, "cache-0 has restarted: Warm, kept 99.9%\ncache-1 has restarted: Warm, kept 99.9%\n", "")
	if got := w.annotation("cache-0-a", v1beta1.AnnotationRestart); got != stamped || w.looks != 4 {
		t.Errorf("the annotation is %q after %d looks", got, w.looks)
	}
	if w.progress.String() != "Waiting for cache-0\nWaiting for cache-1\n" {
		t.Errorf("the progress is %q", w.progress.String())
	}
}

func TestRestartIsBounded(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.createPods()
	w.pause = func(look int) bool { return look < 3 }
	w.want(w.run("restart", "cache", "1"), exitFailed, "", "shard cache-1 hasn't reported its restart")
	w.pause = func(int) bool { t.Error("it waits"); return false }
	w.want(w.run("restart", "cache", "cache-0", "--wait=false"), 0, "cache-0 restarts\n", "")
	w.want(w.run("restart", "cache", "0", "--timeout=0s"), exitFailed, "", "hasn't reported its restart")
}

func TestRestartStopsAtAShardThatLostItsItems(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.createPods()
	w.pause = func(look int) bool {
		s := &m.Status.Shards[0]
		s.RestartAnnotation, s.StartResult = w.annotation("cache-0-a", v1beta1.AnnotationRestart), v1beta1.StartCold
		w.report(m)
		return look < 10
	}
	w.want(w.run("restart", "cache", "--all"), exitFailed, "cache-0 has restarted: Cold\n", "shows the event that says why; not restarted: cache-1\n")
	if got := w.annotation("cache-1-b", v1beta1.AnnotationRestart); got != "" {
		t.Errorf("the other shard has the annotation %q", got)
	}
}

func TestMoveSetsTheAnnotation(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.createPods()
	w.want(w.run("move", "cache", "0"), 0, "cache-0 moves to another node: \"kubectl memcached why cache -n default\"", "")
	if got := w.annotation("cache-0-a", v1beta1.AnnotationMove); got != stamped {
		t.Errorf("the annotation is %q", got)
	}
	w.want(w.run("move", "cache", "0", "--cancel"), 0, "cache-0 keeps its pod", "")
	if _, has := simtest.Get[*corev1.Pod](w.api, "cache-0-a").Annotations[v1beta1.AnnotationMove]; has {
		t.Error("the annotation is still there")
	}
}

func TestPauseResumeAndRetryChangeTheMemcached(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	get := func() *v1beta1.Memcached { return simtest.Get[*v1beta1.Memcached](w.api, "cache") }
	if w.want(w.run("pause", "cache"), 0, `cache is paused: "kubectl memcached resume cache -n default" continues`, ""); !get().Spec.Paused {
		t.Error("it isn't paused")
	}
	if w.want(w.run("resume", "cache"), 0, "why cache -n default", ""); get().Spec.Paused {
		t.Error("it is paused")
	}
	if w.want(w.run("retry", "cache"), 0, "retries", ""); get().Annotations[v1beta1.AnnotationRetry] != stamped {
		t.Errorf("got annotations %v", get().Annotations)
	}
}

// A command that is copied from the output must not change a Memcached of the same name in another cluster.
func TestCommandsNameTheClusterOfTheFlags(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	m.Spec.Memory = new(resource.MustParse("64Mi"))
	if err := w.api.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.createPods()
	const flags = " --context=c --cluster='the shop' --server=https://shop:6443"
	run := func(args string) int {
		return w.run(append(strings.Fields(args), "--context=c", "--cluster=the shop", "--server=https://shop:6443")...)
	}
	w.want(run("pause cache"), 0, `"kubectl memcached resume cache -n default`+flags+`"`, "")
	w.want(run("move cache 0"), 0, `"kubectl memcached why cache -n default`+flags+`"`, "")
	w.want(run("restart cache 0"), exitFailed, "", `"kubectl memcached why cache -n default`+flags+`"`)
	w.want(run("backup cache --claim c"), 0, `"kubectl -n default`+flags+` get memcachedbackup`, "")
	w.want(run("restore cache --backup b"), 0, `"kubectl -n default`+flags+` get memcachedrestore`, "")
	w.pods.metrics = func(string, string) (string, error) {
		return "memcached_agent_recommended_memory_bytes{reason=\"EvictedEarly\"} 83886080\n", nil
	}
	w.want(run("size cache"), 0, "kubectl -n default"+flags+" patch memcached cache", "")
	w.pause = func(int) bool {
		m := simtest.Get[*v1beta1.Memcached](w.api, "cache").DeepCopy()
		m.Status.Purge = &v1beta1.PurgeStatus{Request: m.Annotations[v1beta1.AnnotationPurge], Phase: v1beta1.TransferComplete, Shards: []v1beta1.PurgedShard{{Items: 1}}}
		w.report(m)
		return true
	}
	w.want(run("purge cache"), 0, `"kubectl memcached purge cache -n default`+flags+` --yes"`, "")
}

func TestScaledIsSaidOfTheScalingThatWaits(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.want(w.run("scaled", "cache"), exitFailed, "", "cache doesn't wait for its clients")
	m.Status.Scaling = &v1beta1.ScalingStatus{ID: "3-4-1", Step: v1beta1.ScalingWaiting}
	w.report(m)
	w.want(w.run("scaled", "cache"), 0, "completes the scaling of cache", "")
	if got := simtest.Get[*v1beta1.Memcached](w.api, "cache").Annotations[v1beta1.AnnotationScaled]; got != "3-4-1" {
		t.Errorf("the annotation is %q", got)
	}
}

func TestPurgeDeletesOnlyWithConfirmation(t *testing.T) {
	const table = "SHARD    ITEMS  BYTES\ncache-0  1,234  5,678\ncache-1  0      0\n"
	shards := []v1beta1.PurgedShard{{Items: 1234, Bytes: 5678}, {}}
	for name, c := range map[string]struct {
		args string
		// answers are the status after each look.
		answers []v1beta1.PurgeStatus
		code    int
		out     string
		err     string
		request string
	}{
		"a dry run": {"", []v1beta1.PurgeStatus{{Phase: v1beta1.TransferRunning}, {Phase: v1beta1.TransferComplete, Shards: shards}}, 0,
			table + "Nothing was deleted: \"kubectl memcached purge cache -n default --yes\" deletes these items\n", "", "DryRun-" + stamped},
		"confirmed": {"--yes", []v1beta1.PurgeStatus{{Phase: v1beta1.TransferComplete, Shards: shards}, {Phase: v1beta1.TransferComplete, Message: "deleted 1,234 items"}}, 0,
			table + "cache: deleted 1,234 items\n", "", "Delete-" + stamped},
		"nothing there": {"--yes", []v1beta1.PurgeStatus{{Phase: v1beta1.TransferComplete, Shards: shards[1:]}}, 0,
			"SHARD    ITEMS  BYTES\ncache-0  0      0\nNo shard has such items\n", "", "DryRun-" + stamped},
		"no ring":                      {"--yes", []v1beta1.PurgeStatus{{Phase: v1beta1.TransferFailed, Message: "no ring"}}, exitFailed, "", "cache isn't purged: no ring", "DryRun-" + stamped},
		"too long":                     {"--yes --timeout=0s", nil, exitFailed, "", "requires release 1.1.0", "DryRun-" + stamped},
		"it waits":                     {"", []v1beta1.PurgeStatus{{Phase: v1beta1.TransferPending, Message: "waiting for shard cache-1"}, {Phase: v1beta1.TransferRunning, Message: "waiting for shard cache-1"}}, exitFailed, "", "waiting for shard cache-1", "DryRun-" + stamped},
		"an answer to another request": {"--timeout=0s", []v1beta1.PurgeStatus{{Request: "DryRun-1", Phase: v1beta1.TransferComplete}}, exitFailed, "", "requires release 1.1.0", "DryRun-" + stamped},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache")
			request := func() string {
				return simtest.Get[*v1beta1.Memcached](w.api, "cache").Annotations[v1beta1.AnnotationPurge]
			}
			w.pause = func(look int) bool {
				if look > len(c.answers) {
					return false
				}
				m, answer := simtest.Get[*v1beta1.Memcached](w.api, "cache").DeepCopy(), c.answers[look-1]
				answer.Request = cmp.Or(answer.Request, request())
				m.Status.Purge = &answer
				w.report(m)
				return true
			}
			w.want(w.run(append([]string{"purge", "cache"}, strings.Fields(c.args)...)...), c.code, c.out, c.err)
			if got := request(); got != c.request {
				t.Errorf("the annotation is %q", got)
			}
			if progress := w.progress.String(); strings.Contains(c.err, "waiting") && progress != "Waiting for the operator\ncache: "+c.err+"\n" {
				t.Errorf("the progress is %q", progress)
			}
		})
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.createPods()
	before := simtest.Get[*v1beta1.Memcached](w.api, "cache")
	for _, args := range []string{"restart cache --all", "move cache 0", "pause cache", "retry cache", "backup cache --claim c", "restore cache --backup b"} {
		if code := w.run(append(strings.Fields(args), "--dry-run")...); code != 0 || w.out.Len() == 0 || !strings.Contains(w.err.String(), "A dry run changes nothing") {
			t.Errorf("%s: exit code %d and\n%s%s", args, code, w.out.String(), w.err.String())
		}
	}
	after := simtest.Get[*v1beta1.Memcached](w.api, "cache")
	pods, restores := simtest.All[*corev1.Pod](w.api), simtest.All[*v1beta1.MemcachedRestore](w.api)
	if after.ResourceVersion != before.ResourceVersion || pods[0].Annotations != nil || pods[1].Annotations != nil || len(w.backups())+len(restores) > 0 || w.looks > 0 {
		t.Errorf("it has changed %+v, %+v, %+v or %+v, after %d looks", after, pods, w.backups(), restores, w.looks)
	}
}

func TestVerbsNameTheMissingRight(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.createPods()
	w.reject = func(verb string, o any) error {
		if _, isPod := o.(*corev1.Pod); verb == "patch" && isPod {
			return cannot("patch", "", "pods", "cache-0-a")
		} else if verb == "create" {
			return cannot("create", v1beta1.GroupVersion.Group, "memcachedbackups", "")
		} else if verb == "patch" {
			return cannot("patch", v1beta1.GroupVersion.Group, "memcacheds", "cache")
		}
		return nil
	}
	w.pods.err = cannot("create", "", "pods/exec", "cache-0-a")
	for _, c := range []struct{ says, args string }{
		{"patch pods in namespace default", "restart cache 0"},
		{"patch pods in namespace default", "move cache 0"},
		{"patch memcacheds.cache.memcached-operator.io in namespace default", "pause cache"},
		{"patch memcacheds.cache.memcached-operator.io in namespace default", "retry cache"},
		{"patch memcacheds.cache.memcached-operator.io in namespace default", "purge cache"},
		{"create memcachedbackups.cache.memcached-operator.io in namespace default", "backup cache --claim c"},
		{"create pods/exec in namespace default", "hotkeys cache"},
		{"create pods/exec in namespace default", "clients cache 1"},
		{"create pods/exec in namespace default", "get cache k --shard 0"},
		{"create pods/exec in namespace default", "shell cache --shard 0"},
	} {
		code := w.run(strings.Fields(c.args)...)
		w.want(code, exitDenied, "", "bob lacks the permission to "+c.says)
		w.want(code, exitDenied, "", `the ClusterRole "edit" has it`)
	}
}

func TestWrongShardsAreErrors(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	m.Status.Shards[1].PodName = ""
	w.report(m)
	w.want(w.run("move", "cache", "7"), exitUsage, "", "has no shard 7: name one from 0 to 1")
	w.want(w.run("move", "cache", "1"), exitFailed, "", `shard cache-1 has no pod now: "kubectl memcached why cache -n default"`)
	w.want(w.run("restart", "cache"), exitUsage, "", "use --all")
	w.want(w.run("restart", "cache", "0", "--all"), exitUsage, "", "use --all")
	w.want(w.run("restart", "cache", "--all"), exitFailed, "", "shard cache-1 has no pod now")
	w.want(w.run("hotkeys", "cache", "--for", "1m"), exitUsage, "", "use at least 1s and at most 30s")
	m.Status.Shards = nil
	w.report(m)
	for _, args := range []string{"move cache 0", "restart cache --all", "clients cache"} {
		w.want(w.run(strings.Fields(args)...), exitFailed, "", "has no shards: \"kubectl memcached why cache -n default\" says why")
	}
	if code := w.run("__complete", "move", "cache", ""); code != 0 || !strings.HasPrefix(w.out.String(), ":4\n") {
		t.Errorf("exit code %d, and\n%s", code, w.out.String())
	}
}

func (w *world) backups() []*v1beta1.MemcachedBackup {
	return simtest.All[*v1beta1.MemcachedBackup](w.api)
}

func (w *world) schedule(name, of, claim string) {
	w.t.Helper()
	s := &v1beta1.MemcachedScheduledBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	s.Spec.Schedule, s.Spec.Retention = "@daily", &v1beta1.BackupRetention{}
	s.Spec.BackupTemplate.Spec.MemcachedRef.Name = of
	s.Spec.BackupTemplate.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: claim}
	if err := w.api.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

func TestBackupIsAsThoseOfTheSchedule(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.want(w.run("backup", "cache"), exitUsage, "", "neither a schedule nor spec.backup.final")
	w.want(w.run("backup", "cache", "--sub-path", "x"), exitUsage, "", "--sub-path needs --claim")
	w.want(w.run("backup", "cache", "--claim", "volume", "--sub-path", "dir"), 0, "MemcachedBackup cache-", "")
	w.schedule("nightly", "cache", "nights")
	w.schedule("foreign", "other", "others")
	w.want(w.run("backup", "cache"), 0, "MemcachedBackup cache-", "")
	w.schedule("weekly", "cache", "weeks")
	w.want(w.run("backup", "cache"), exitUsage, "", "--from=[nightly weekly]")
	w.want(w.run("backup", "cache", "--from", "foreign"), exitFailed, "", "no MemcachedScheduledBackup foreign backs up cache")
	w.want(w.run("backup", "cache", "--from", "weekly"), 0, "MemcachedBackup cache-", "")
	var claims []string
	for _, b := range w.backups() {
		if b.Spec.MemcachedRef.Name != "cache" {
			t.Errorf("it is of %s", b.Spec.MemcachedRef.Name)
		}
		if claim := b.Spec.Store.PersistentVolumeClaim.ClaimName; (claim == "volume") == (b.Spec.DeletionPolicy == v1beta1.SnapshotDelete) {
			t.Errorf("the deletion policy of that in %s is %q", claim, b.Spec.DeletionPolicy)
		}
		claims = append(claims, b.Spec.Store.PersistentVolumeClaim.ClaimName+b.Spec.Store.PersistentVolumeClaim.SubPath)
	}
	if slices.Sort(claims); !slices.Equal(claims, []string{"nights", "volumedir", "weeks"}) {
		t.Errorf("got backups to %v", claims)
	}
}

func TestBackupToTheStoreOfTheFinalBackup(t *testing.T) {
	w := newWorld(t)
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "default"}}
	m.Spec.Backup.Final = &v1beta1.FinalBackup{Store: v1beta1.SnapshotStore{PersistentVolumeClaim: &v1beta1.PersistentVolumeClaimStore{ClaimName: "last"}}}
	if err := w.api.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.want(w.run("backup", "cache"), 0, "MemcachedBackup cache-", "")
	if all := w.backups(); len(all) != 1 || all[0].Spec.Store.PersistentVolumeClaim.ClaimName != "last" {
		t.Errorf("got %+v", all)
	}
}

func TestRestoreLoadsTheLastCompleteBackup(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.want(w.run("restore", "cache"), exitFailed, "", "has no complete backup")
	for i, phase := range []v1beta1.TransferPhase{v1beta1.TransferComplete, v1beta1.TransferComplete, v1beta1.TransferFailed} {
		b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: []string{"first", "second", "failed"}[i], Namespace: "default"}}
		b.Spec.MemcachedRef.Name = "cache"
		b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "c"}
		if err := w.api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		completed := metav1.NewTime(now.Add(time.Duration(i) * time.Hour))
		b.Status.Phase, b.Status.CompletionTime = phase, &completed
		if err := w.api.SubResource("status").Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	w.want(w.run("restore", "cache", "--max-age", "6h", "--max-ttl", "1500ms", "--replace"), 0, "loads MemcachedBackup second", "")
	all := simtest.All[*v1beta1.MemcachedRestore](w.api)
	if len(all) != 1 || all[0].Spec.BackupRef.Name != "second" || all[0].Spec.MemcachedRef.Name != "cache" || *all[0].Spec.MaxAgeSeconds != 21600 ||
		*all[0].Spec.MaxTTLSeconds != 2 || all[0].Spec.ExistingItems != v1beta1.ExistingReplace {
		t.Errorf("got %+v", all)
	}
	w.want(w.run("restore", "cache", "--backup", "first"), 0, "loads MemcachedBackup first", "")
}

func TestAgentsAreAskedByShard(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.want(w.run("hotkeys", "cache", "1", "--for", "2s"), 0, "cache-1:\nthe answer of cache-1-b\n", "")
	w.want(w.run("clients", "cache"), 0, "cache-0:\nthe answer of cache-0-a\n\ncache-1:\nthe answer of cache-1-b\n", "")
	if want := []string{"cache-1-b: hotkeys -for 2s", "cache-0-a: connections", "cache-1-b: connections"}; !slices.Equal(*w.pods.commands, want) {
		t.Errorf("got %q, want %q", *w.pods.commands, want)
	}
	*w.pods.commands = nil
	w.pods.err = errors.New("memcached is not serving")
	w.want(w.run("clients", "cache"), exitFailed, "", "cache-0-a in namespace default: memcached is not serving\nquerying the agent in pod cache-1-b in namespace default: memcached is not serving\n")
	if len(*w.pods.commands) != 2 {
		t.Errorf("one that fails prevents the other: %q", *w.pods.commands)
	}
	w.pods.err = fmt.Errorf("reading: %w", os.ErrDeadlineExceeded) // as a WebSocket does
	w.want(w.run("clients", "cache", "0"), exitFailed, "", "the agent in pod cache-0-a in namespace default didn't answer within 15s: check the pod, its node and the network\n")
}
