package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// takeBackup adds a complete backup.
func takeBackup(obs *observation.Observation, name string, ago time.Duration) *v1beta1.MemcachedBackup {
	at := metav1.NewTime(obs.Now.Add(-ago))
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at}}
	b.Status.Phase, b.Status.Snapshot = v1beta1.TransferComplete, &v1beta1.SnapshotStatus{SnapshotTime: at}
	b.Status.CompletionTime = &at
	obs.Backups = append(obs.Backups, b)
	return b
}

func withRefill(s *v1beta1.MemcachedSpec) {
	s.Backup.Refill = v1beta1.Refill{Mode: v1beta1.RefillNewestBackup, MaxAgeSeconds: ptr.To[int32](7200), MaxTTLSeconds: ptr.To[int32](900)}
}

// refills returns which restores a plan creates, and its events about lost shards.
func refills(p plan.Plan) (lines []string) {
	for _, o := range p.Actions.Create {
		restore := o.(*v1beta1.MemcachedRestore)
		lines = append(lines, fmt.Sprintf("%s of shards %d from %s", restore.Name[:strings.LastIndex(restore.Name, "-")], restore.Spec.Shards, restore.Spec.BackupRef.Name))
	}
	for _, lost := range p.Refills.Lost {
		lines = append(lines, lost.Event.Reason)
	}
	return lines
}

// The shard lost its items a minute ago. A backup is an hour old, and another one is older.
func TestShardThatStartedEmptyIsRefilled(t *testing.T) {
	refilled := []string{"cache-refill-1 of shards [1] from hourly", v1beta1.EventRefillStarted}
	update := shardtest.Revision(t, shardtest.Memory("128Mi"))
	replaced := func(obs *observation.Observation) { // by an update to the revision of the spec
		shardtest.Annotate(obs.ReplicaSet("cache-1"), annotations.Update, shard.EncodeRecord(shard.UpdateRecord{Revision: obs.UpdateRevision.Hash(), Method: rollout.Replace}))
	}
	last := func(obs *observation.Observation) *v1beta1.ShardStatus { return &obs.Memcached.Status.Shards[1] }
	agent := func(obs *observation.Observation, change func(*agentwire.Status)) {
		answer := obs.Agents["cache-1-x"]
		change(&answer)
		obs.Agents["cache-1-x"] = answer
	}
	sameContainer := func(obs *observation.Observation) {
		plantest.ActivePod(obs, "cache-1").Status.ContainerStatuses[0].ContainerID = "containerd://" + shardtest.RunningContainer
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		want   []string
	}{
		"its container was replaced":         {func(*observation.Observation) {}, refilled},
		"memcached crashed in its container": {sameContainer, refilled},
		"the user restarted it": {func(obs *observation.Observation) {
			sameContainer(obs)
			agent(obs, func(a *agentwire.Status) { a.Restart = "now"; last(obs).StartTime = ptr.To(v1beta1.Time(a.Start.At)) })
			plantest.ActivePod(obs, "cache-1").Annotations[v1beta1.AnnotationRestart] = "now"
		}, refilled},
		"the status describes this start": {func(obs *observation.Observation) {
			sameContainer(obs)
			agent(obs, func(a *agentwire.Status) { a.Start.At = last(obs).StartTime.Add(time.Millisecond) }) // the status has seconds
		}, nil},
		"the status of an earlier operator has no time": {func(obs *observation.Observation) { sameContainer(obs); last(obs).StartTime = nil }, nil},
		"it kept its items": {func(obs *observation.Observation) {
			agent(obs, func(a *agentwire.Status) { a.Start.Result = agentwire.StartWarm })
		}, nil},
		"it received its items": {func(obs *observation.Observation) {
			agent(obs, func(a *agentwire.Status) { a.Start.Result = agentwire.StartHandedOver })
		}, nil},
		"it has never had any":         {func(obs *observation.Observation) { last(obs).StartResult = "" }, nil},
		"its agent hasn't answered":    {func(obs *observation.Observation) { clear(obs.Agents) }, nil},
		"an update replaced it":        {func(obs *observation.Observation) { replaced(obs); last(obs).Revision = "former" }, nil},
		"it was lost after an update":  {replaced, refilled},
		"an update in place preceded":  {func(obs *observation.Observation) { last(obs).Revision = "former" }, refilled},
		"an update will replace it":    {func(obs *observation.Observation) { obs.Memcached.Spec.Memory = update.Spec.Memory; replaced(obs) }, refilled},
		"spec.backup.refill isn't set": {func(obs *observation.Observation) { obs.Memcached.Spec.Backup.Refill = v1beta1.Refill{} }, nil},
		"the Memcached is paused":      {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, nil},
		"the spec is rejected":         {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, refilled},
		"it is rejected and paused": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Version, obs.Memcached.Spec.Paused = "1.5.0", true
		}, nil},
		"the Memcached is being deleted": {func(obs *observation.Observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now} }, nil},
		"a restore fills the new Memcached": {func(obs *observation.Observation) {
			obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{Phase: v1beta1.TransferRunning, RestoreName: "cache-bootstrap"}
			obs.Restores["cache-bootstrap"] = observation.Object{APIObject: &v1beta1.MemcachedRestore{}, Owner: observation.Ours}
		}, nil},
		"no backup exists": {func(obs *observation.Observation) { obs.Backups = nil }, []string{v1beta1.EventRefillSkipped}},
		"all backups are too old": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Backup.Refill.MaxAgeSeconds = ptr.To[int32](1800)
		}, []string{v1beta1.EventRefillSkipped}},
		"a newer backup lacks the lost items": {func(obs *observation.Observation) { takeBackup(obs, "after", 30*time.Second) }, refilled},
		"a backup was taken as it started":    {func(obs *observation.Observation) { takeBackup(obs, "after", time.Minute) }, refilled},
		"a backup was completed after it started": {func(obs *observation.Observation) {
			takeBackup(obs, "during", 5*time.Minute).Status.CompletionTime = &metav1.Time{Time: obs.Now.Add(-30 * time.Second)}
		}, refilled},
		"a newer backup is running": {func(obs *observation.Observation) {
			takeBackup(obs, "running", 30*time.Minute).Status.Phase = v1beta1.TransferRunning
		}, refilled},
		"a newer backup is being deleted": {func(obs *observation.Observation) {
			takeBackup(obs, "deleted", 30*time.Minute).DeletionTimestamp = &metav1.Time{Time: obs.Now}
		}, refilled},
		"a newer backup is of a deleted Memcached of its name": {func(obs *observation.Observation) {
			takeBackup(obs, "former", 30*time.Minute).CreationTimestamp = metav1.NewTime(obs.Memcached.CreationTimestamp.Add(-time.Second))
		}, refilled},
		"a newer backup has no snapshot": {func(obs *observation.Observation) { takeBackup(obs, "empty", 30*time.Minute).Status.Snapshot = nil }, refilled},
	} {
		t.Run(name, func(t *testing.T) {
			obs := plantest.Running(t, 2, withRefill)
			takeBackup(obs, "older", 90*time.Minute)
			takeBackup(obs, "hourly", time.Hour)
			plantest.Answer(obs, "cache-1", agentwire.StartCold)
			c.change(obs)
			if diff := cmp.Diff(c.want, refills(plantest.Plan(obs))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The operator may be killed after it has created the restore, and before it has written the status.
func TestEachLossHasOneRestore(t *testing.T) {
	obs := plantest.Running(t, 2, withRefill)
	takeBackup(obs, "hourly", time.Hour)
	plantest.Answer(obs, "cache-1", agentwire.StartCold)
	first := plantest.Plan(obs).Actions.Create[0].(*v1beta1.MemcachedRestore)
	if s := first.Spec; *s.MaxAgeSeconds != 7200 || *s.MaxTTLSeconds != 900 || s.RateLimit != nil || s.MemcachedRef.Name != "cache" {
		t.Errorf("the restore is %+v", s)
	}
	if first.Annotations[annotations.Refills] != "cache-1-x" { // the pod's UID
		t.Errorf("it has the annotations %v", first.Annotations)
	}
	takeBackup(obs, "newer", 30*time.Minute)
	obs.Restores[first.Name] = observation.Object{APIObject: first, Owner: observation.Ours}
	p := plantest.Plan(obs)
	if got := refills(p); !slices.Equal(got, []string{v1beta1.EventRefillStarted}) || !strings.Contains(p.Refills.Lost[0].Event.Message, "from MemcachedBackup hourly") {
		t.Errorf("with its restore: %q, %+v", got, p.Refills.Lost)
	}
	first.Spec.BackupRef, first.Spec.Snapshot = nil, &v1beta1.SnapshotSource{Path: "another"} // by a user who knew the name
	if got := refills(plantest.Plan(obs)); !slices.Equal(got, []string{v1beta1.EventRefillStarted}) {
		t.Errorf("with a restore of a snapshot: %q", got)
	}
	obs.Restores[first.Name] = observation.Object{APIObject: first, Owner: observation.Foreign}
	if got := refills(plantest.Plan(obs)); len(got) != 2 {
		t.Errorf("with a foreign restore of that name: %q", got)
	}
	delete(obs.Restores, first.Name)
	for what, change := range map[string]func(pod *corev1.Pod, agent *agentwire.Status){
		"another pod": func(pod *corev1.Pod, _ *agentwire.Status) { pod.UID = "another" },
		"another container": func(pod *corev1.Pod, _ *agentwire.Status) {
			pod.Status.ContainerStatuses[0].ContainerID = "containerd://third"
		},
		"another restart": func(_ *corev1.Pod, agent *agentwire.Status) { agent.Restart = "again" },
		"another start":   func(_ *corev1.Pod, agent *agentwire.Status) { agent.Start.At = agent.Start.At.Add(time.Second) },
	} {
		next := plantest.Running(t, 2, withRefill)
		takeBackup(next, "hourly", time.Hour)
		plantest.Answer(next, "cache-1", agentwire.StartCold)
		agent := next.Agents["cache-1-x"]
		change(plantest.ActivePod(next, "cache-1"), &agent)
		next.Agents["cache-1-x"] = agent
		if again := plantest.Plan(next).Actions.Create; len(again) != 1 || again[0].GetName() == first.Name {
			t.Errorf("%s: %d restores, of the same name as the first: %v", what, len(again), len(again) > 0)
		}
	}
}

func TestFinishedRefillsOfExistingPodsAreHistory(t *testing.T) {
	obs := plantest.Running(t, 2, withRefill)
	restore := func(name string, age time.Duration, pod types.UID, phase v1beta1.TransferPhase) *v1beta1.MemcachedRestore {
		r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(obs.Now.Add(-age)), Annotations: map[string]string{annotations.Refills: string(pod)}}}
		r.Status.Phase = phase
		obs.Restores[name] = observation.Object{APIObject: r, Owner: observation.Ours}
		return r
	}
	restore("cache-refill-1-running", time.Hour, "cache-1-x", v1beta1.TransferRunning)
	restore("cache-refill-1-newest", 2*time.Hour, "cache-1-x", v1beta1.TransferComplete)
	restore("cache-refill-0-failed", 3*time.Hour, "cache-0-x", v1beta1.TransferFailed)
	restore("cache-refill-1-a", 4*time.Hour, "cache-1-x", v1beta1.TransferComplete)
	restore("cache-refill-1-b", 4*time.Hour, "cache-1-x", v1beta1.TransferComplete)
	restore("cache-refill-1-gone", time.Hour, "gone", v1beta1.TransferComplete)
	restore("theirs", 9*time.Hour, "cache-1-x", v1beta1.TransferComplete)
	restore("cache-refill-1-deleted", 9*time.Hour, "cache-1-x", v1beta1.TransferComplete).DeletionTimestamp = &metav1.Time{Time: obs.Now}
	obs.Restores["cache-refill-1-foreign"] = observation.Object{APIObject: restore("cache-refill-1-foreign", 9*time.Hour, "gone", v1beta1.TransferComplete), Owner: observation.Foreign}
	want := []string{"delete MemcachedRestore cache-refill-1-gone", "delete MemcachedRestore cache-refill-1-b"}
	if diff := cmp.Diff(want, describe(plantest.Plan(obs).Actions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	obs.Memcached.Spec.Backup.Refill = v1beta1.Refill{}
	if diff := cmp.Diff(want, describe(plantest.Plan(obs).Actions)); diff != "" {
		t.Errorf("without spec.backup.refill (-want +got):\n%s", diff)
	}
}

func TestBackupsAreReadWhenAShardStartedEmpty(t *testing.T) {
	obs := plantest.Running(t, 2)
	for result, want := range map[agentwire.StartResult]bool{agentwire.StartWarm: false, agentwire.StartHandedOver: false, agentwire.StartCold: true} {
		if plantest.Answer(obs, "cache-1", result); observation.StartsEmpty(obs) != want {
			t.Errorf("start %s: %t", result, !want)
		}
	}
}
