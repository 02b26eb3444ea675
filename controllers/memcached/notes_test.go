package memcached

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

func TestAFailureIsOfOneRevisionAndOneAttempt(t *testing.T) {
	old, wanted, other := askedBy(t), askedBy(t, version("1.6.38")), askedBy(t, version("1.6.44"))
	for name, c := range map[string]struct {
		noted  failure
		change func(m *v1alpha1.Memcached)
		want   string
	}{
		"of this one":                 {failure{Revision: wanted.Revision(), Message: "it crashed"}, func(*v1alpha1.Memcached) {}, "it crashed"},
		"of another target":           {failure{Revision: other.Revision(), Message: "it crashed"}, func(*v1alpha1.Memcached) {}, ""},
		"a person has it tried again": {failure{Revision: wanted.Revision(), Message: "it crashed"}, func(m *v1alpha1.Memcached) { m.Annotations = map[string]string{v1alpha1.AnnotationRetry: "1"} }, ""},
		"it was tried again, and failed again": {failure{Revision: wanted.Revision(), Attempt: "1", Message: "it crashed"},
			func(m *v1alpha1.Memcached) { m.Annotations = map[string]string{v1alpha1.AnnotationRetry: "1"} }, "it crashed"},
		"its items are given up now": {failure{Revision: wanted.Revision(), Message: "it started empty"},
			func(m *v1alpha1.Memcached) {
				m.Spec.UpdateStrategy = &v1alpha1.UpdateStrategy{WhenNotWarm: v1alpha1.ActionContinue}
			}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shardAt(old, old, wanted)
			s.set.Annotations = map[string]string{v1alpha1.AnnotationFailed: note(c.noted)}
			c.change(s.seen.memcached)
			if got := s.look(); got.Failed != c.want {
				t.Errorf("%q, want %q", got.Failed, c.want)
			}
		})
	}
}

func TestThatAShardWillBeEmptyIsToldOfThatShardAndThatChange(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, memory("128Mi"))
	told := v1alpha1.UpdateStatus{Revision: wanted.Revision(), Shard: "cache-0", Step: rollout.Replace.String()}
	for name, c := range map[string]struct {
		change func(u *v1alpha1.UpdateStatus)
		want   bool
	}{
		"it is":                     {func(*v1alpha1.UpdateStatus) {}, true},
		"of another shard":          {func(u *v1alpha1.UpdateStatus) { u.Shard = "cache-1" }, false},
		"of another target":         {func(u *v1alpha1.UpdateStatus) { u.Revision = old.Revision() }, false},
		"of a restart of the shard": {func(u *v1alpha1.UpdateStatus) { u.Step = rollout.Restart.String() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, u := shardAt(old, old, wanted), told
			c.change(&u)
			s.seen.memcached.Status.Update = &u
			if got := s.look(); got.Forward.Told != c.want {
				t.Errorf("told: %v", got.Forward.Told)
			}
		})
	}
	s := shardAt(old, old, wanted)
	if got := s.look(); got.Forward.Told {
		t.Error("it is told, and the status tells nothing")
	}
}

func TestARestartIsJudgedByWhatTheAgentTells(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"), extraArgs("-v"))
	words, _ := wanted.Arguments()
	before, _ := old.Arguments()
	warm := agentapi.Start{Result: agentapi.StartWarm}
	for name, c := range map[string]struct {
		agent agentapi.Status
		ago   time.Duration
		want  rollout.Outcome
		why   string
	}{
		"it kept its items":             {agentapi.Status{Version: "1.6.38", Arguments: words, Start: warm}, time.Second, rollout.Settled, ""},
		"it lost them":                  {agentapi.Status{Version: "1.6.38", Arguments: words, Start: agentapi.Start{Result: agentapi.StartCold, Reason: "no file"}}, time.Second, rollout.Cold, "it started empty: no file"},
		"it is of another version":      {agentapi.Status{Version: "1.6.39", Arguments: words, Start: warm}, time.Second, rollout.Wrong, "image docker.io/library/memcached:1.6.38 holds memcached 1.6.39"},
		"its arguments are to come":     {agentapi.Status{Version: "1.6.38", Arguments: before, Start: warm}, time.Minute, rollout.Pending, ""},
		"it refuses them":               {agentapi.Status{Version: "1.6.38", Arguments: before, ArgumentsError: "no -v here", Start: warm}, 6 * time.Second, rollout.Wrong, "no -v here"},
		"it refused those before":       {agentapi.Status{Version: "1.6.38", Arguments: before, ArgumentsError: "no -x here", Start: warm}, 5 * time.Second, rollout.Pending, ""},
		"it is empty with others still": {agentapi.Status{Version: "1.6.38", Arguments: before, Start: agentapi.Start{Result: agentapi.StartCold}}, time.Minute, rollout.Pending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shardAt(old, wanted, wanted)
			s.noteOn(s.pod, step{Revision: wanted.Revision(), From: old.Revision(), At: s.seen.now.Add(-c.ago), Class: rollout.Recreate, Container: "containerd://before"})
			s.seen.agents["first"] = c.agent
			if got := s.look(); got.Pod.Outcome != c.want || got.Pod.Why != c.why {
				t.Errorf("it is %s, %q; want %s, %q", got.Pod.Outcome, got.Pod.Why, c.want, c.why)
			}
		})
	}
}

// decided is a plan that has decided on a step for a shard.
func decided(s *smallShard, d rollout.Decision) (*plan, *observed) {
	s.seen.memcached.Name, s.seen.memcached.Spec.Size = "cache", ptr.To[int32](2)
	return &plan{target: s.target, shards: []shard{s.look()}, decision: d}, s.seen
}

func TestAFailureIsNotedUntilTheTargetIsAnother(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"))
	s := shardAt(old, wanted, wanted)
	p, seen := decided(s, rollout.Decision{Shard: "cache-0", Step: rollout.StepNote, Message: "it crashed"})
	noted := p.shardWanted(seen, 0).Annotations[v1alpha1.AnnotationFailed]
	if got := readNote[failure](map[string]string{"it": noted}, "it"); got == nil || got.Message != "it crashed" || got.Revision != wanted.Revision() {
		t.Fatalf("what is noted is %q", noted)
	}

	stepped := note(step{Revision: old.Revision(), Class: rollout.Replace})
	s.set.Annotations = map[string]string{v1alpha1.AnnotationFailed: noted, v1alpha1.AnnotationStep: stepped}
	p, seen = decided(s, rollout.Decision{Shard: "cache-1", Gate: rollout.UpdateFailed})
	want := p.shardWanted(seen, 0).Annotations
	if want[v1alpha1.AnnotationFailed] != noted || want[v1alpha1.AnnotationStep] != stepped {
		t.Errorf("at the next look the notes are %q", want)
	}

	s.target = askedBy(t, version("1.6.44"))
	p, seen = decided(s, rollout.Decision{})
	if text, ok := p.shardWanted(seen, 0).Annotations[v1alpha1.AnnotationFailed]; ok {
		t.Errorf("of another target it is noted that %q", text)
	}
}

func TestAShardThatIsAddedDuringAnUpdateIsWhatTheFirstOneIs(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"))
	p, seen := decided(shardAt(old, old, wanted), rollout.Decision{})
	if got := p.shardWanted(seen, 1); got.Asked.Revision() != old.Revision() || got.Surge {
		t.Errorf("the new shard is to be %s, and shard 0 is %s", got.Asked, old)
	}
	p.shards = nil
	if got := p.shardWanted(seen, 1); got.Asked.Revision() != wanted.Revision() {
		t.Errorf("without any shard the new one is to be %s, want %s", got.Asked, wanted)
	}
}

// Else the ReplicaSet makes another pod of what is broken.
func TestABrokenPodIsEndedOnceItsTemplateIsAnother(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"))
	remake := rollout.Decision{Shard: "cache-0", Step: rollout.StepRemake}
	for name, c := range map[string]struct {
		template manifests.Asked
		want     int
	}{
		"the template is what it was": {old, 0},
		"the template is the target":  {wanted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := shardAt(c.template, old, wanted)
			p, seen := decided(s, remake)
			if p.planStep(seen); len(p.deletes) != c.want {
				t.Errorf("%d pods are ended", len(p.deletes))
			}
			if got := p.shardWanted(seen, 0).Asked.Revision(); got != wanted.Revision() {
				t.Errorf("the template is to be %s, want %s", got, wanted.Revision())
			}
		})
	}
}

func TestTheTemplateFollowsThePodThatIsConfirmed(t *testing.T) {
	old, changed, wanted := askedBy(t), askedBy(t, version("1.6.44")), askedBy(t, version("1.6.38"))
	p, seen := decided(shardAt(old, changed, wanted), rollout.Decision{Shard: "cache-0", Step: rollout.StepConfirm})
	if got := p.shardWanted(seen, 0); got.Asked.Revision() != changed.Revision() || got.Surge {
		t.Errorf("the template is to be %s, and the pod is %s", got.Asked, changed)
	}
	p.decision.Step = rollout.StepAwait
	if got := p.shardWanted(seen, 0); got.Asked.Revision() != old.Revision() {
		t.Errorf("before that the template is to be %s, and it was %s", got.Asked, old)
	}
}

func TestAnUpdateThatStoppedIsToldToAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		decision rollout.Decision
		want     string
	}{
		"it goes on":                     {rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait}, ""},
		"a gate holds it for a while":    {rollout.Decision{Shard: "cache-0", Gate: rollout.WindowClosed}, ""},
		"it failed":                      {rollout.Decision{Shard: "cache-0", Gate: rollout.UpdateFailed, Message: "it crashed", NeedsPerson: true}, v1alpha1.ReasonUpdateStopped},
		"its version is not allowed":     {rollout.Decision{Shard: "cache-0", Gate: rollout.PathNotAllowed, NeedsPerson: true}, v1alpha1.ReasonPathNotAllowed},
		"its image cannot be proven":     {rollout.Decision{Shard: "cache-0", Gate: rollout.ImageNotProven, NeedsPerson: true}, v1alpha1.ReasonImageUnusable},
		"no node takes its second pod":   {rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait, NeedsPerson: true}, v1alpha1.ReasonUnschedulable},
		"its clients do not find again":  {rollout.Decision{Shard: "cache-0", Gate: rollout.HitRatio, NeedsPerson: true}, v1alpha1.ReasonHitRatioNotBack},
		"it waits for a hit ratio still": {rollout.Decision{Shard: "cache-0", Gate: rollout.HitRatio}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := shardAt(askedBy(t), askedBy(t), askedBy(t, version("1.6.38")))
			p, seen := decided(s, c.decision)
			got := worst(seen, *p, applied{}, v1alpha1.MemcachedStatus{})
			if reason := reasonOf(got); reason != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

func reasonOf(p *problem) string {
	if p == nil {
		return ""
	}
	return p.reason
}

// What the agent tells before is of the start before, whose items are gone by then.
func TestAStartIsToldOnceTheRestartIsOver(t *testing.T) {
	old, wanted := askedBy(t), askedBy(t, version("1.6.38"))
	for container, want := range map[string]v1alpha1.StartResult{"containerd://runs": v1alpha1.StartCold, "containerd://before": v1alpha1.StartWarm} {
		s := shardAt(old, wanted, wanted)
		s.noteOn(s.pod, step{Revision: wanted.Revision(), From: old.Revision(), At: time.Unix(999, 0), Class: rollout.Recreate, Container: container})
		words, _ := wanted.Arguments()
		s.seen.agents["first"] = agentapi.Status{Version: "1.6.38", Arguments: words, Start: agentapi.Start{Result: agentapi.StartWarm, At: time.Unix(990, 0)}}
		s.seen.memcached.Status.Shards = []v1alpha1.ShardStatus{{Name: "cache-0", Start: v1alpha1.StartCold}}
		p, seen := decided(s, rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait})
		if got, _ := shardStatus(seen, p, applied{}, "cache-0"); got.Start != want {
			t.Errorf("the container that is to end is %s: the start is told as %s, want %s", container, got.Start, want)
		}
	}
}
