package shard

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// fixture is one shard, for tests to change before they evaluate it.
type fixture struct {
	memcached *v1beta1.Memcached
	set       *appsv1.ReplicaSet
	pods      []*corev1.Pod
	agents    map[string]agentwire.Status
	answers   map[string]agentwire.Status
	secrets   map[types.UID]agentwire.Secrets
	admitted  map[types.UID]AdmittedImage
	now       time.Time
	update    resources.PodRevision
	can       resources.Resizing
}

// newFixture returns a shard with a ready pod, named "first".
func newFixture(template, pod, update resources.PodRevision) *fixture {
	return &fixture{
		memcached: &v1beta1.Memcached{}, set: shardtest.ReplicaSet("cache-0", template),
		pods: []*corev1.Pod{shardtest.Pod("first", pod)}, agents: map[string]agentwire.Status{},
		now: time.Unix(1000, 0), update: update, can: resources.ResizeAll,
	}
}

// newReplacement returns a shard whose pod is being replaced.
func newReplacement(pod, update resources.PodRevision) *fixture {
	f := newFixture(update, pod, update)
	record(f.set, UpdateRecord{Revision: update.Hash(), From: pod.Hash(), Method: rollout.Replace})
	return f
}

func (f *fixture) addPod(name string, revision resources.PodRevision) *corev1.Pod {
	pod := shardtest.Pod(name, revision)
	f.pods = append(f.pods, pod)
	return pod
}

func (f *fixture) evaluate() State {
	observer := Observer{Status: &f.memcached.Status, Update: f.update}
	return EvaluateAll([]Observation{observer.Observe(0, f.set, f.pods)}, Inputs{
		Memcached: f.memcached, Update: f.update, Agents: f.agents, Answers: f.answers, Secrets: f.secrets, Admitted: f.admitted, Now: f.now, Resizing: f.can,
	})[0]
}

// record sets the record of an update on a pod or a ReplicaSet.
func record(o metav1.Object, r UpdateRecord) {
	shardtest.Annotate(o, annotations.Update, EncodeRecord(r))
}

func TestPodIsUpdatedInPlaceFromItsTemplate(t *testing.T) {
	old, update, third := podRevision(t, version("1.6.38")), podRevision(t, version("1.6.45")), podRevision(t, version("1.6.44"))
	updated := UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: time.Unix(500, 0), Method: rollout.Recreate, Container: "before"}
	replacedAt := func(second int64) *UpdateRecord {
		return &UpdateRecord{Revision: old.Hash(), At: time.Unix(second, 0), Method: rollout.Replace}
	}
	for _, c := range []struct {
		name          string
		template, pod resources.PodRevision
		onPod, onSet  *UpdateRecord
		want          bool
	}{
		{"updated in place", old, update, &updated, nil, true},
		{"updated in place after a replacement", old, update, &updated, replacedAt(400), true},
		{"never updated", update, old, nil, nil, false},
		{"replaced by its previous revision", old, update, &updated, replacedAt(600), false},
		{"replaced by a third revision", third, update, &updated, nil, false},
		{"rolled back since the record", update, old, &updated, nil, false},
		{"only the ReplicaSet has a record", old, update, nil, &updated, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(c.template, c.pod, update)
			if c.onPod != nil {
				record(f.pods[0], *c.onPod)
			}
			if c.onSet != nil {
				record(f.set, *c.onSet)
			}
			if got := f.evaluate().Rollout.Pod.InPlace; got != c.want {
				t.Errorf("in place: %v", got)
			}
		})
	}
}

func TestStopIsAcknowledgedWhileTheAnnouncementStands(t *testing.T) {
	old, update, third := podRevision(t, version("1.6.38")), podRevision(t, version("1.6.45")), podRevision(t, version("1.6.44"))
	f := newFixture(old, old, update)
	state := f.evaluate()
	token, older := state.StopToken(update, f.now), state.StopToken(update, f.now.Add(-agentwire.AnnouncementTimeout/2))
	for _, c := range []struct {
		name             string
		onPod, onAgent   string
		update           resources.PodRevision
		wantAcknowledged bool
		wantAnnounced    bool
	}{
		{"not announced", "", "", update, false, false},
		{"not read yet", token, "", update, false, true},
		{"read", token, token, update, true, true},
		{"read, and nearly forgotten", older, older, update, false, true},
		{"withdrawn, which the agent hasn't read", "", token, update, false, false},
		{"for another revision", token, token, third, false, true},
		{"for a previous container", "before-" + token, "", update, false, false},
		{"for a previous container, which the agent does not know", "before-" + token, "before-" + token, update, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(old, old, c.update)
			if c.onPod != "" {
				f.pods[0].Annotations[annotations.Stop] = c.onPod
			}
			f.agents["first"] = agentwire.Status{AnnouncedStop: c.onAgent}
			got := f.evaluate().Rollout
			if got.ToTarget.StopAcknowledged != c.wantAcknowledged || got.StopAnnounced != c.wantAnnounced {
				t.Errorf("acknowledged: %v, announced: %v", got.ToTarget.StopAcknowledged, got.StopAnnounced)
			}
		})
	}
}

func TestShardNeedsSecondPodUntilItTakesOver(t *testing.T) {
	old, update := podRevision(t, memory("64Mi")), podRevision(t, memory("128Mi"))
	for _, c := range []struct {
		name string
		make func(t *testing.T) *fixture
		want bool
	}{
		{"no second pod yet", func(*testing.T) *fixture { return newReplacement(old, update) }, true},
		{"the ReplicaSet was recreated and its pod stayed", func(*testing.T) *fixture { return newFixture(update, old, update) }, false},
		{"the second pod is starting", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			shardtest.Starting(f.addPod("second", update))
			return f
		}, true},
		{"the second pod is ready", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			f.addPod("second", update)
			return f
		}, true},
		{"the second pod is ready and the first is draining", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			f.pods[0].Annotations[corev1.PodDeletionCost] = DrainedPodDeletionCost
			f.addPod("second", update)
			return f
		}, false},
		{"the second pod was lost while the first was draining", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			f.pods[0].Annotations[corev1.PodDeletionCost] = DrainedPodDeletionCost
			return f
		}, true},
		{"the first pod is terminating", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			f.pods[0].DeletionTimestamp = &metav1.Time{}
			return f
		}, false},
		{"the first pod is broken and will be recreated", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			shardtest.Crashing(f.pods[0])
			return f
		}, false},
		{"the spec changed since", func(t *testing.T) *fixture { return newFixture(update, old, podRevision(t, memory("256Mi"))) }, false},
		{"the second pod has taken over, and the first isn't deleted yet", func(*testing.T) *fixture {
			f := newReplacement(old, update)
			f.pods[0].Annotations[corev1.PodDeletionCost] = DrainedPodDeletionCost
			f.addPod("second", update).Annotations[annotations.Receive] = string(f.pods[0].UID)
			return f
		}, true},
		{"the spec changed since, and the second pod takes over", func(t *testing.T) *fixture {
			f := newFixture(update, old, podRevision(t, memory("256Mi")))
			second := f.addPod("second", update)
			second.Annotations[annotations.Receive] = string(f.pods[0].UID)
			shardtest.Starting(second)
			return f
		}, true},
		{"the spec changed since, and the second pod crashes", func(t *testing.T) *fixture {
			f := newFixture(update, old, podRevision(t, memory("256Mi")))
			second := f.addPod("second", update)
			second.Annotations[annotations.Receive] = string(f.pods[0].UID)
			shardtest.Crashing(second)
			return f
		}, false},
		{"the spec changed since, and the second pod was to replace another one", func(t *testing.T) *fixture {
			f := newFixture(update, old, podRevision(t, memory("256Mi")))
			second := f.addPod("second", update)
			second.Annotations[annotations.Receive] = "another"
			shardtest.Starting(second)
			return f
		}, false},
		{"the pod is rolled back in place", func(t *testing.T) *fixture {
			return newFixture(old, podRevision(t, version("1.6.38")), old)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := c.make(t)
			state := f.evaluate()
			if got := state.Surges; got != c.want {
				t.Errorf("needs a second pod: %v", got)
			}
		})
	}
}

// It may do so for minutes, which is no failure of the update.
func TestSecondPodReceivesTheItemsUntilItIsReady(t *testing.T) {
	f := newReplacement(podRevision(t, memory("64Mi")), podRevision(t, memory("128Mi")))
	second := f.addPod("second", f.update)
	f.answers = map[string]agentwire.Status{"second": {Phase: agentwire.PhaseReceiving}}
	if next := f.evaluate().Rollout.Next; next == nil || next.State != rollout.Serving {
		t.Errorf("a pod that is ready is %+v", next)
	}
	shardtest.Starting(second)
	if next := f.evaluate().Rollout.Next; next == nil || next.State != rollout.Receiving {
		t.Errorf("a pod that receives items is %+v", next)
	}
}

// A quota may be exceeded for a moment, and the first pod serves.
func TestSecondPodThatTheAPIServerRejectsIsAwaited(t *testing.T) {
	old, update := podRevision(t, memory("64Mi")), podRevision(t, memory("128Mi"))
	rejected := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}
	f := newReplacement(old, update)
	if got := f.evaluate().Rollout.Next; got != nil {
		t.Errorf("next pod %+v", got)
	}
	f.set.Status.Conditions = []appsv1.ReplicaSetCondition{rejected}
	if got := f.evaluate().Rollout.Next; got == nil || got.State != rollout.Starting || got.Reason != "the API server rejects the pod: exceeded quota" {
		t.Errorf("next pod %+v", got)
	}
	idle := newFixture(old, old, update)
	idle.set.Status.Conditions = []appsv1.ReplicaSetCondition{rejected}
	if got := idle.evaluate().Rollout.Next; got != nil {
		t.Errorf("no next pod is wanted, got %+v", got)
	}
}

// A pod whose image was changed still reports the termination of its previous container.
func TestPodIsBrokenByItsOwnContainerOnly(t *testing.T) {
	old, update := podRevision(t, version("1.6.38")), podRevision(t, version("1.6.45"))
	for _, c := range []struct {
		name      string
		container string
		at        int64
		want      rollout.State
	}{
		{"the previous container", shardtest.RunningContainer, 995, rollout.Starting},
		{"the previous container, and no other starts in time", shardtest.RunningContainer, 990, rollout.Broken},
		{"its own container", "before", 995, rollout.Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(old, old, update)
			shardtest.Crashing(f.pods[0])
			record(f.pods[0], UpdateRecord{Revision: old.Hash(), From: update.Hash(), At: time.Unix(c.at, 0), Method: rollout.Recreate, Container: c.container})
			if got := f.evaluate().Rollout.Pod.State; got != c.want {
				t.Errorf("the pod is %s, want %s", got, c.want)
			}
		})
	}
}

func TestRollbackIsVerifiedOnceMemcachedRunsWithTheOldArguments(t *testing.T) {
	old, rejected := podRevision(t), podRevision(t, extraArgs("-v"))
	oldArguments := old.Arguments
	arguments := rejected.Arguments
	for _, c := range []struct {
		name  string
		agent agentwire.Status
		want  rollout.Outcome
	}{
		{"memcached runs with the new ones", agentwire.Status{Arguments: arguments}, rollout.Pending},
		{"memcached runs with the old ones", agentwire.Status{Arguments: oldArguments}, rollout.Verified},
		{"the agent reports why not", agentwire.Status{Arguments: arguments, ArgumentsError: "no memory"}, rollout.Verified},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(old, old, rejected)
			record(f.pods[0], UpdateRecord{Revision: old.Hash(), From: rejected.Hash(), At: time.Unix(999, 0), Method: rollout.Restart})
			f.agents["first"] = c.agent
			if got := f.evaluate().Rollout.Pod.Outcome; got != c.want {
				t.Errorf("outcome %s, want %s", got, c.want)
			}
		})
	}
}

// Until it terminates, the failed container keeps serving, and its agent says nothing of the
// next one.
func TestRollbackIsVerifiedOnceTheContainerIsRecreated(t *testing.T) {
	old, failed := podRevision(t), podRevision(t, version("1.6.38"))
	for container, want := range map[string]rollout.Outcome{shardtest.RunningContainer: rollout.Pending, "before": rollout.Verified} {
		f := newFixture(old, old, failed)
		record(f.pods[0], UpdateRecord{Revision: old.Hash(), From: failed.Hash(), Method: rollout.Recreate, Container: container})
		arguments := old.Arguments
		f.agents["first"] = agentwire.Status{Arguments: arguments}
		if got := f.evaluate().Rollout.Pod.Outcome; got != want {
			t.Errorf("the rollback started in %s: outcome %s, want %s", container, got, want)
		}
	}
}

// Another release of the operator may derive other arguments from the same spec.
func TestArgumentsAreComparedWithThoseOfThePod(t *testing.T) {
	old, update := podRevision(t), podRevision(t, extraArgs("-v"))
	f := newFixture(old, update, update)
	record(f.pods[0], UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: time.Unix(900, 0), Method: rollout.Restart})
	f.pods[0].Annotations[annotations.Arguments] = `["-v","as","before"]`
	f.agents["first"] = agentwire.Status{Version: "1.6.45", Arguments: []string{"-v", "as", "before"}}
	if got := f.evaluate().Rollout.Pod.Outcome; got != rollout.Verified {
		t.Errorf("outcome %s", got)
	}
}

func TestPredecessorTerminates(t *testing.T) {
	revision := podRevision(t)
	for _, c := range []struct {
		name string
		add  func(f *fixture)
		want bool
	}{
		{"one pod", func(*fixture) {}, false},
		{"a former pod is terminating", func(f *fixture) { f.addPod("former", revision).DeletionTimestamp = &metav1.Time{} }, true},
		{"a surplus pod", func(f *fixture) { f.addPod("second", revision) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(revision, revision, revision)
			c.add(f)
			if got := f.evaluate().Rollout.PredecessorTerminating; got != c.want {
				t.Errorf("a predecessor terminates: %v", got)
			}
		})
	}
	update := podRevision(t, memory("128Mi"))
	f := newFixture(update, revision, update)
	f.addPod("second", update)
	if got := f.evaluate().Rollout; got.PredecessorTerminating || got.Next == nil {
		t.Errorf("next pod %+v, a predecessor terminates: %v", got.Next, got.PredecessorTerminating)
	}
}

func TestCrossSeriesUpgradeIsAllowedByItsOwnField(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.7.0"))
	for name, c := range map[string]struct {
		strategy  v1beta1.UpdateStrategy
		forbidden bool
	}{
		"no strategy":                  {v1beta1.UpdateStrategy{}, true},
		"Forbid":                       {v1beta1.UpdateStrategy{CrossSeriesUpgrade: v1beta1.CrossSeriesForbid}, true},
		"Allow":                        {v1beta1.UpdateStrategy{CrossSeriesUpgrade: v1beta1.CrossSeriesAllow}, false},
		"item loss isn't cross series": {v1beta1.UpdateStrategy{OnItemLoss: v1beta1.ItemLossContinue}, true},
	} {
		f := newFixture(old, old, update)
		f.memcached.Spec.UpdateStrategy = c.strategy
		const want = "1.7.0 may not be able to read items saved by 1.6.45, so no shard was changed; " +
			"to upgrade anyway and lose the items, set spec.updateStrategy.crossSeriesUpgrade to Allow"
		if got := f.evaluate().Rollout.ToTarget.Forbidden; (got != "") != c.forbidden || got != "" && got != want {
			t.Errorf("%s: forbidden: %q", name, got)
		}
	}
}

func TestEmptyStartIsAnnouncedForOneShardAndOneUpdate(t *testing.T) {
	old, update := podRevision(t), podRevision(t, memory("128Mi"))
	announced := v1beta1.UpdateStatus{Revision: update.Hash(), Shard: "cache-0", Method: v1beta1.UpdateReplace}
	for name, c := range map[string]struct {
		change func(u *v1beta1.UpdateStatus)
		want   bool
	}{
		"this update":              {func(*v1beta1.UpdateStatus) {}, true},
		"another shard":            {func(u *v1beta1.UpdateStatus) { u.Shard = "cache-1" }, false},
		"another revision":         {func(u *v1beta1.UpdateStatus) { u.Revision = old.Hash() }, false},
		"a restart of the shard":   {func(u *v1beta1.UpdateStatus) { u.Method = v1beta1.UpdateRestart }, false},
		"the roll back of a shard": {func(u *v1beta1.UpdateStatus) { u.Method, u.RollingBack = v1beta1.UpdateRecreate, true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, u := newFixture(old, old, update), announced
			c.change(&u)
			f.memcached.Status.Update = &u
			if got := f.evaluate().Rollout.ToTarget.ReplacementAnnounced; got != c.want {
				t.Errorf("announced: %v", got)
			}
		})
	}
	if newFixture(old, old, update).evaluate().Rollout.ToTarget.ReplacementAnnounced {
		t.Error("announced without an update in the status")
	}
}

func TestRestartOutcomeFollowsTheAgent(t *testing.T) {
	old, update := podRevision(t), podRevision(t, version("1.6.38"), extraArgs("-v"))
	arguments := update.Arguments
	oldArguments := old.Arguments
	warm := agentwire.Start{Result: agentwire.StartWarm}
	for name, c := range map[string]struct {
		agent  agentwire.Status
		ago    time.Duration
		want   rollout.Outcome
		reason string
	}{
		"kept its items": {agentwire.Status{Version: "1.6.38", Arguments: arguments, Start: warm}, time.Second, rollout.Verified, ""},
		"lost its items": {agentwire.Status{Version: "1.6.38", Arguments: arguments, Start: agentwire.Start{Result: agentwire.StartCold, Reason: "no file"}},
			time.Second, rollout.Cold, "memcached started empty: no file"},
		"another version": {agentwire.Status{Version: "1.6.39", Arguments: arguments, Start: warm}, time.Second,
			rollout.Mismatched, "image docker.io/library/memcached:1.6.38 contains memcached 1.6.39"},
		"arguments not applied yet": {agentwire.Status{Version: "1.6.38", Arguments: oldArguments, Start: warm}, time.Minute, rollout.Pending, ""},
		"arguments rejected": {agentwire.Status{Version: "1.6.38", Arguments: oldArguments, ArgumentsError: "no -v here", Start: warm},
			11 * time.Second, rollout.Mismatched, "no -v here"},
		"arguments of an earlier update rejected": {agentwire.Status{Version: "1.6.38", Arguments: oldArguments, ArgumentsError: "no -x here", Start: warm},
			10 * time.Second, rollout.Pending, ""},
		"empty with the old arguments": {agentwire.Status{Version: "1.6.38", Arguments: oldArguments, Start: agentwire.Start{Result: agentwire.StartCold}},
			time.Minute, rollout.Pending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(old, update, update)
			record(f.pods[0], UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: f.now.Add(-c.ago), Method: rollout.Recreate, Container: "before"})
			f.agents["first"] = c.agent
			if got := f.evaluate().Rollout.Pod; got.Outcome != c.want || got.Reason != c.reason {
				t.Errorf("outcome %s, %q; want %s, %q", got.Outcome, got.Reason, c.want, c.reason)
			}
		})
	}
}

// The other shards keep their pods then.
func TestReplacementThatLosesItsItemsFailsTheUpdate(t *testing.T) {
	update := podRevision(t, memory("128Mi"))
	for name, c := range map[string]struct {
		change func(f *fixture, r *UpdateRecord)
		want   rollout.Outcome
	}{
		"it started empty":                   {func(*fixture, *UpdateRecord) {}, rollout.Cold},
		"it received the items":              {func(f *fixture, _ *UpdateRecord) { f.start(agentwire.StartHandedOver) }, rollout.Verified},
		"the update may lose them":           {func(_ *fixture, r *UpdateRecord) { r.KeepsItems = false }, rollout.Verified},
		"the record is of another revision":  {func(_ *fixture, r *UpdateRecord) { r.Revision = "former" }, rollout.Verified},
		"another shard is updated by now":    {func(f *fixture, _ *UpdateRecord) { f.memcached.Status.Update.Shard = "cache-1" }, rollout.Verified},
		"it lost its items after the update": {func(f *fixture, _ *UpdateRecord) { f.memcached.Status.Update = nil }, rollout.Verified},
	} {
		f := newFixture(update, update, update)
		f.memcached.Status.Update = &v1beta1.UpdateStatus{Revision: update.Hash(), Shard: "cache-0", Method: v1beta1.UpdateReplace}
		f.start(agentwire.StartCold)
		r := UpdateRecord{Revision: update.Hash(), Method: rollout.Replace, KeepsItems: true}
		c.change(f, &r)
		record(f.set, r)
		if got := f.evaluate().Rollout.Pod.Outcome; got != c.want {
			t.Errorf("%s: outcome %s, want %s", name, got, c.want)
		}
	}
}

func (f *fixture) start(result agentwire.StartResult) {
	f.agents["first"] = agentwire.Status{Arguments: f.update.Arguments, Start: agentwire.Start{Result: result}}
}

func TestLastUpdatedIsTheShardWithTheLatestDisruption(t *testing.T) {
	updated := func(name string, at int64, method rollout.Method) State {
		return State{Observation: Observation{Name: name, Record: &UpdateRecord{At: time.Unix(at, 0), Method: method}}}
	}
	never := State{Observation: Observation{Name: "never"}}
	for name, c := range map[string]struct {
		shards []State
		want   string
	}{
		"no shards":                 {nil, ""},
		"none was updated":          {[]State{never, never}, ""},
		"one was updated":           {[]State{never, updated("a", 5, rollout.Restart), never}, "a"},
		"in ascending order":        {[]State{updated("a", 5, rollout.Restart), updated("b", 7, rollout.Replace)}, "b"},
		"in another order":          {[]State{updated("a", 9, rollout.Recreate), updated("b", 7, rollout.Replace), updated("c", 8, rollout.Restart)}, "a"},
		"not a live update":         {[]State{updated("a", 5, rollout.Restart), updated("b", 7, rollout.Live)}, "a"},
		"not the only, live update": {[]State{updated("b", 7, rollout.Live)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if last := LastUpdated(c.shards); last != nil {
				got = last.Name
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
