package memcached

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// smallShard is a shard with its pods, for tests to change before it is looked at.
type smallShard struct {
	seen   *observed
	set    *appsv1.ReplicaSet
	pod    *corev1.Pod
	target manifests.Asked
}

// shardAt is one whose ReplicaSet would make the template and whose pod serves and
// was last asked to be something.
func shardAt(template, pod, target manifests.Asked) *smallShard {
	s := &smallShard{target: target, set: &appsv1.ReplicaSet{}, seen: &observed{
		memcached: &v1alpha1.Memcached{}, now: time.Unix(1000, 0), pods: map[string][]*corev1.Pod{}, agents: map[string]agentapi.Status{},
	}}
	s.set.Name = "cache-0"
	s.set.Spec.Template.Annotations = manifests.PodAnnotations(template)
	s.pod = s.addPod("first", pod)
	return s
}

// replaced returns a shard whose pod is being replaced.
func replaced(pod, target manifests.Asked) *smallShard {
	s := shardAt(target, pod, target)
	s.set.Annotations = map[string]string{v1alpha1.AnnotationStep: note(step{Revision: target.Revision(), From: pod.Revision(), Class: rollout.Replace})}
	return s
}

// addPod adds a pod that serves in a container "runs".
func (s *smallShard) addPod(name string, asked manifests.Asked) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: manifests.PodAnnotations(asked)}}
	p.Spec.Containers = []corev1.Container{{Name: manifests.Container, Image: asked.Image.Reference}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifests.Container, ContainerID: "containerd://runs"}}
	s.seen.pods["cache-0"] = append(s.seen.pods["cache-0"], p)
	return p
}

// starts has a pod not serve yet.
func starts(p *corev1.Pod) { p.Status.Conditions = nil }

// crashes has a pod's container wait after a crash.
func crashes(p *corev1.Pod) {
	p.Status.Conditions = nil
	p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}
}

func (s *smallShard) look() shard {
	s.seen.target = s.target
	return s.read().judged(s.seen, true)
}

// read returns the shard as far as its objects tell.
func (s *smallShard) read() shard {
	asked := reader{target: s.target}
	return asked.shard(s.set, s.seen.pods[s.set.Name])
}

func (s *smallShard) noteOn(o metav1.Object, n step) {
	if o.GetAnnotations() == nil {
		o.SetAnnotations(map[string]string{})
	}
	o.GetAnnotations()[v1alpha1.AnnotationStep] = note(n)
}

func TestAPodThatWasChangedInPlaceIsToldFromOneThatIsReplaced(t *testing.T) {
	old, wanted, third := askedBy(t, version("1.6.38")), askedBy(t, version("1.6.45")), askedBy(t, version("1.6.44"))
	changed := step{Revision: wanted.Revision(), From: old.Revision(), At: time.Unix(500, 0), Class: rollout.Recreate, Container: "containerd://before"}
	for _, c := range []struct {
		name          string
		template, pod manifests.Asked
		onPod, onSet  *step
		want          bool
	}{
		{"changed in place", old, wanted, &changed, nil, true},
		{"changed in place after it was replaced", old, wanted, &changed, &step{Revision: old.Revision(), At: time.Unix(400, 0), Class: rollout.Replace}, true},
		{"never changed", wanted, old, nil, nil, false},
		{"replaced, or remade, by what it was before", old, wanted, &changed, &step{Revision: old.Revision(), At: time.Unix(600, 0), Class: rollout.Replace}, false},
		{"replaced by a third one", third, wanted, &changed, nil, false},
		{"what was noted was taken back", wanted, old, &changed, nil, false},
		{"what is noted on the set alone is of a replacement", old, wanted, nil, &changed, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shardAt(c.template, c.pod, wanted)
			if c.onPod != nil {
				s.noteOn(s.pod, *c.onPod)
			}
			if c.onSet != nil {
				s.noteOn(s.set, *c.onSet)
			}
			if got := s.look(); got.Pod.InPlace != c.want {
				t.Errorf("in place: %v", got.Pod.InPlace)
			}
		})
	}
}

func TestAStopIsAnnouncedWhileItStandsAndTheAgentKnows(t *testing.T) {
	old, wanted, third := askedBy(t, version("1.6.38")), askedBy(t, version("1.6.45")), askedBy(t, version("1.6.44"))
	s := shardAt(old, old, wanted)
	looked := s.look()
	token := looked.token(wanted, s.seen.now)
	for _, c := range []struct {
		name                          string
		onPod, heard                  string
		target                        manifests.Asked
		wantAnnounced, wantToWithdraw bool
	}{
		{"neither", "", "", wanted, false, false},
		{"not heard yet", token, "", wanted, false, true},
		{"heard", token, token, wanted, true, true},
		{"taken back, and the agent has not read that", "", token, wanted, false, false},
		{"on the way to something else", token, token, third, false, true},
		{"of a container that was before", "before-" + token, "before-" + token, wanted, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shardAt(old, old, c.target)
			if c.onPod != "" {
				s.pod.Annotations[v1alpha1.AnnotationStop] = c.onPod
			}
			s.seen.agents["first"] = agentapi.Status{AnnouncedStop: c.heard}
			got := s.look()
			if got.Forward.Announced != c.wantAnnounced || got.Announcement != c.wantToWithdraw {
				t.Errorf("announced: %v, to be withdrawn: %v", got.Forward.Announced, got.Announcement)
			}
		})
	}
}

func TestAShardHasASecondPodUntilThatTakesOver(t *testing.T) {
	old, wanted := askedBy(t, memory("64Mi")), askedBy(t, memory("128Mi"))
	for _, c := range []struct {
		name string
		make func(t *testing.T) *smallShard
		want bool
	}{
		{"none yet", func(*testing.T) *smallShard { return replaced(old, wanted) }, true},
		{"the set was made again, and its pod stayed", func(*testing.T) *smallShard { return shardAt(wanted, old, wanted) }, false},
		{"it starts", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			starts(s.addPod("second", wanted))
			return s
		}, true},
		{"it serves", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			s.addPod("second", wanted)
			return s
		}, true},
		{"it serves, and the first is the one to go", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			s.pod.Annotations[corev1.PodDeletionCost] = retiredCost
			s.addPod("second", wanted)
			return s
		}, false},
		{"it was lost when the first was the one to go", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			s.pod.Annotations[corev1.PodDeletionCost] = retiredCost
			return s
		}, true},
		{"the first goes by itself", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			s.pod.DeletionTimestamp = &metav1.Time{}
			return s
		}, false},
		{"the first is broken, and made anew", func(*testing.T) *smallShard {
			s := replaced(old, wanted)
			crashes(s.pod)
			return s
		}, false},
		{"another target", func(t *testing.T) *smallShard { return shardAt(wanted, old, askedBy(t, memory("256Mi"))) }, false},
		{"it goes back in place", func(t *testing.T) *smallShard {
			return shardAt(old, askedBy(t, version("1.6.38")), old)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(t)
			got := s.look()
			if surges := got.surges(s.target.Revision()); surges != c.want {
				t.Errorf("a second pod: %v", surges)
			}
		})
	}
}

func TestASecondPodThatTheAPIServerRefusesIsBroken(t *testing.T) {
	old, wanted := askedBy(t, memory("64Mi")), askedBy(t, memory("128Mi"))
	refused := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"}
	s := replaced(old, wanted)
	if got := s.look(); got.Next != nil {
		t.Errorf("the next pod is %+v", got.Next)
	}
	s.set.Status.Conditions = []appsv1.ReplicaSetCondition{refused}
	if got := s.look(); got.Next == nil || got.Next.State != rollout.Broken || got.Next.Why != "exceeded quota" {
		t.Errorf("the next pod is %+v", got.Next)
	}
	settled := shardAt(old, old, wanted)
	settled.set.Status.Conditions = []appsv1.ReplicaSetCondition{refused}
	if got := settled.look(); got.Next != nil {
		t.Errorf("nobody wants a next pod, and it is %+v", got.Next)
	}
}

// A pod whose image was changed still shows what became of the container before.
func TestAPodIsBrokenByItsOwnContainerOnly(t *testing.T) {
	old, wanted := askedBy(t, version("1.6.38")), askedBy(t, version("1.6.45"))
	for _, c := range []struct {
		name      string
		container string
		at        int64
		want      rollout.State
	}{
		{"the one before", "containerd://runs", 995, rollout.Starting},
		{"the one before, and no other follows", "containerd://runs", 990, rollout.Broken},
		{"its own", "containerd://before", 995, rollout.Broken},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shardAt(old, old, wanted)
			crashes(s.pod)
			s.noteOn(s.pod, step{Revision: old.Revision(), From: wanted.Revision(), At: time.Unix(c.at, 0), Class: rollout.Recreate, Container: c.container})
			if got := s.look(); got.Pod.State != c.want {
				t.Errorf("the pod is %s", got.Pod.State)
			}
		})
	}
}

func TestAShardThatWasTakenBackIsSettledOnceMemcachedHasItsArguments(t *testing.T) {
	old, refused := askedBy(t), askedBy(t, extraArgs("-v"))
	was, _ := old.Arguments()
	words, _ := refused.Arguments()
	for _, c := range []struct {
		name  string
		agent agentapi.Status
		want  rollout.Outcome
	}{
		{"it still has the others", agentapi.Status{Arguments: words}, rollout.Pending},
		{"it has them", agentapi.Status{Arguments: was}, rollout.Settled},
		{"it says why it has not", agentapi.Status{Arguments: words, ArgumentsError: "no memory"}, rollout.Settled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shardAt(old, old, refused)
			s.noteOn(s.pod, step{Revision: old.Revision(), From: refused.Revision(), At: time.Unix(999, 0), Class: rollout.Restart})
			s.seen.agents["first"] = c.agent
			if got := s.look(); got.Pod.Outcome != c.want {
				t.Errorf("it is %s", got.Pod.Outcome)
			}
		})
	}
}

// Another release of the operator may write the same spec as other arguments.
func TestArgumentsAreComparedWithThoseOnThePod(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, extraArgs("-v"))
	s := shardAt(old, wanted, wanted)
	s.noteOn(s.pod, step{Revision: wanted.Revision(), From: old.Revision(), At: time.Unix(900, 0), Class: rollout.Restart})
	s.pod.Annotations[v1alpha1.AnnotationArguments] = `["-v","as","before"]`
	s.seen.agents["first"] = agentapi.Status{Version: "1.6.45", Arguments: []string{"-v", "as", "before"}}
	if got := s.look(); got.Pod.Outcome != rollout.Settled {
		t.Errorf("it is %s", got.Pod.Outcome)
	}
}

func TestAShardIsLeftByAPodThatGoesOrIsOneTooMany(t *testing.T) {
	asked := askedBy(t)
	for _, c := range []struct {
		name string
		add  func(s *smallShard)
		want bool
	}{
		{"one pod", func(*smallShard) {}, false},
		{"a former one goes", func(s *smallShard) { s.addPod("former", asked).DeletionTimestamp = &metav1.Time{} }, true},
		{"one too many", func(s *smallShard) { s.addPod("second", asked) }, true},
		{"one that was evicted is nobody's", func(s *smallShard) {
			evicted := s.addPod("evicted", asked)
			starts(evicted)
			evicted.Status.Phase = corev1.PodFailed
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shardAt(asked, asked, asked)
			c.add(s)
			if got := s.look(); got.Leaving != c.want {
				t.Errorf("leaving: %v", got.Leaving)
			}
		})
	}
	wanted := askedBy(t, memory("128Mi"))
	s := shardAt(wanted, asked, wanted)
	s.addPod("second", wanted)
	if got := s.look(); got.Leaving || got.Next == nil {
		t.Errorf("the pod that takes over is %+v, leaving: %v", got.Next, got.Leaving)
	}
}

func TestTheHitRatioIsWaitedForOfTheShardThatWasChangedLast(t *testing.T) {
	gate := &v1alpha1.HitRatioGate{Percent: ptr.To[int32](50), MinRequests: ptr.To[int32](100), TimeoutSeconds: ptr.To[int32](60), WhenTimedOut: v1alpha1.ActionContinue}
	changed := func(revision string, ago, gets, hits int64) *shard {
		return &shard{Shard: rollout.Shard{Name: "cache-0"}, agent: &agentapi.Status{RecentGets: 200, RecentHits: 50},
			step: &step{Revision: revision, At: time.Unix(1000-ago, 0), Gets: gets, Hits: hits}}
	}
	recovery := func(waited time.Duration) *rollout.Recovery {
		return &rollout.Recovery{Shard: "cache-0", Before: 0.8, Now: 0.25, Requests: 200, Share: 0.5, MinRequests: 100, Waited: waited, Timeout: time.Minute, Continue: true}
	}
	for _, c := range []struct {
		name string
		gate *v1alpha1.HitRatioGate
		last *shard
		want *rollout.Recovery
	}{
		{"nobody asked to", nil, changed("wanted", 1, 1000, 800), nil},
		{"none was changed", gate, nil, nil},
		{"just changed", gate, changed("wanted", 1, 1000, 800), recovery(time.Second)},
		{"just enough requests before", gate, changed("wanted", 1, 100, 80), recovery(time.Second)},
		{"too few requests before", gate, changed("wanted", 1, 99, 80), nil},
		{"long ago", gate, changed("wanted", 60, 1000, 800), recovery(time.Minute)},
		{"just changed, to what is not wanted any more", gate, changed("overtaken", 59, 1000, 800), recovery(59 * time.Second)},
		{"long ago, by another update", gate, changed("overtaken", 60, 1000, 800), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, recoveryOf(c.gate, c.last, "wanted", time.Unix(1000, 0))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// How it does is asked of its agent, also where its pod is another one that bears
// no note itself.
func TestTheShardThatWasChangedLastIsAskedHowItDoes(t *testing.T) {
	old, wanted := askedBy(t, memory("64Mi")), askedBy(t, memory("128Mi"))
	for _, onSet := range []bool{false, true} {
		s := shardAt(wanted, wanted, wanted)
		n := step{Revision: wanted.Revision(), At: time.Unix(999, 0), Class: rollout.Replace}
		if s.noteOn(s.pod, n); onSet {
			delete(s.pod.Annotations, v1alpha1.AnnotationStep)
			s.noteOn(s.set, n)
		}
		s.pod.Status.PodIP = "10.0.0.1"
		m := s.seen.memcached
		m.Name = "cache"
		m.Spec.Size = ptr.To[int32](2)
		m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{HitRatioGate: &v1alpha1.HitRatioGate{}}
		for _, name := range []string{"cache-0", "cache-1"} { // of both it is known how they started
			m.Status.Shards = append(m.Status.Shards, v1alpha1.ShardStatus{Name: name, Start: v1alpha1.StartCold, ContainerID: "containerd://runs"})
		}
		waits := shardAt(old, old, wanted)
		waits.pod.Name, waits.pod.Status.PodIP = "waits", "10.0.0.2"
		waits.set.Name, waits.seen.pods = "cache-1", map[string][]*corev1.Pod{"cache-1": {waits.pod}}
		s.seen.target, s.seen.shards = wanted, []shard{s.read(), waits.read()}
		var names []string
		for _, pod := range toAsk(s.seen) {
			names = append(names, pod.Name)
		}
		if diff := cmp.Diff([]string{"first", "waits"}, names); diff != "" {
			t.Errorf("noted on the ReplicaSet: %v (-want +got):\n%s", onSet, diff)
		}
	}
}

// It may have come up after all.
func TestAPodThatChangedMeanwhileIsNotEnded(t *testing.T) {
	w := newWorld(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "broken"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	w.must(admin.Create(w.ctx, pod))
	seen := pod.DeepCopy()
	pod.Annotations = map[string]string{"it": "came up"}
	w.must(admin.Update(w.ctx, pod))

	a := w.reconciler.apply(w.ctx, plan{deletes: []client.Object{seen}})
	if !a.outrun || len(a.failures) > 0 {
		t.Errorf("it came to %+v", a)
	}
	w.read("broken", pod)
	a = w.reconciler.apply(w.ctx, plan{deletes: []client.Object{pod}})
	if a.outrun || len(a.failures) > 0 {
		t.Errorf("it came to %+v", a)
	}
	if err := admin.Get(w.ctx, client.ObjectKeyFromObject(pod), pod); err == nil && pod.DeletionTimestamp == nil {
		t.Error("a pod that is as it was seen stays")
	}
}
