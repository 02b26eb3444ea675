package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/status"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// scaled returns an observation of a Memcached with these shards, whose clients know some of them, and whose spec has changed to a size.
func scaled(t *testing.T, exist, listed, to int32) *observation.Observation {
	obs := plantest.Running(t, exist, func(s *v1beta1.MemcachedSpec) { s.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashKetama} })
	m := obs.Memcached
	m.Status.ObservedGeneration, *m.Spec.Size = m.Generation-1, to
	obs.Answers = map[string]agentwire.Status{}
	for ordinal := range int(exist) {
		name := resources.ShardName("cache", ordinal)
		if ordinal < int(listed) {
			m.Status.Servers = append(m.Status.Servers, name+".default.svc.cluster.local:11211")
		}
		obs.Answers[name+"-x"] = agentwire.Status{Phase: agentwire.PhaseServing, HandoverPort: agentwire.HandoverPort, Scaling: &agentwire.ScalingStatus{}}
	}
	return obs
}

// during returns an observation in a step of scaling from a size to another one.
func during(t *testing.T, from, to int32, step v1beta1.ScalingStep) *observation.Observation {
	exist, listed := max(from, to), from
	switch step {
	case v1beta1.ScalingPreparing:
		exist = from
	case v1beta1.ScalingWaiting, v1beta1.ScalingClosing:
		listed = to
	}
	obs := scaled(t, exist, listed, to)
	obs.Memcached.Status.Scaling = &v1beta1.ScalingStatus{ID: "id", From: from, To: to, Step: step, PublishTime: &metav1.Time{Time: obs.Now.Add(-time.Minute)}}
	plantest.Read(obs)
	return obs
}

// selects lets the headless Service select the pods with a label.
func selects(obs *observation.Observation, id string) {
	key := resources.HeadlessKey(obs.Memcached)
	obs.Objects[key] = observation.Object{APIObject: &corev1.Service{Spec: corev1.ServiceSpec{Selector: map[string]string{annotations.Listed: id}}}}
}

// reports lets the agent of a shard report that it has completed a step.
func reports(obs *observation.Observation, shard string, report agentwire.ScalingStatus) {
	if report.ID == "" {
		report.ID = "id"
	}
	obs.Answers[shard+"-x"] = agentwire.Status{Phase: agentwire.PhaseServing, Scaling: &report}
}

func TestItemsMoveIfTheClientsHashIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		cold   string // "no" if items move
	}{
		"out":           {func(*observation.Observation) {}, "no"},
		"in":            {size(2), "no"},
		"the same size": {size(3), ""},
		"to one shard":  {size(1), "two shards or more"},
		"to no shard":   {size(0), ""},
		"mode Cold":     {func(obs *observation.Observation) { obs.Memcached.Spec.Scaling.Mode = v1beta1.ScalingCold }, "spec.scaling.mode is Cold"},
		"no hashing":    {func(obs *observation.Observation) { obs.Memcached.Spec.Access.Hashing = nil }, "set spec.access.hashing"},
		"no handovers": {func(obs *observation.Observation) {
			obs.Memcached.Spec.UpdateStrategy.Handover.Mode = v1beta1.HandoverDisabled
		}, "handover.mode"},
		"Modulo": {func(obs *observation.Observation) { obs.Memcached.Spec.Access.Hashing.Algorithm = v1beta1.HashModulo }, "a multiple"},
		"Modulo, double": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.Hashing.Algorithm = v1beta1.HashModulo
			size(6)(obs)
		}, "no"},
		"paused": {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, ""},
		"a new Memcached": {func(obs *observation.Observation) {
			obs.Memcached.Status = v1beta1.MemcachedStatus{ObservedGeneration: -1}
		}, ""},
		"the status describes this spec": {func(obs *observation.Observation) { obs.Memcached.Status.ObservedGeneration = obs.Memcached.Generation }, ""},
		"the first shard isn't listed":   {func(obs *observation.Observation) { obs.Memcached.Status.Servers = obs.Memcached.Status.Servers[1:] }, ""},
		"another shard is listed":        {func(obs *observation.Observation) { obs.Memcached.Status.Servers[2] = "cache-3." }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := scaled(t, 3, 3, 4)
			c.change(obs)
			to := *obs.Memcached.Spec.Size
			p := plantest.Plan(obs)
			if (p.Scaling.Status != nil) != (c.cold == "no") || c.cold != "no" && (!strings.Contains(p.Scaling.Cold, c.cold) || (p.Scaling.Cold == "") != (c.cold == "")) {
				t.Errorf("%+v, and cold: %q", p.Scaling.Status, p.Scaling.Cold)
			}
			if p.Scaling.Status == nil {
				return
			}
			if s := p.Scaling.Status; s.From != 3 || s.To != to || s.Step != v1beta1.ScalingPreparing || p.Scaling.Cold != "" {
				t.Errorf("it begins with %+v, and cold: %q", s, p.Scaling.Cold)
			}
			if a := describe(p.Actions); len(a) != 0 || len(p.Servers) != 3 {
				t.Errorf("before the status says so, %q and the servers %q", a, p.Servers)
			}
		})
	}
}

// A final backup copies the shards in the list of servers. A rejected spec can become valid without a change, as with another version of the operator.
// The Service of the last shard is deleted while nothing is written, or becomes another one's, and the Memcached continues.
func TestShardWhoseServiceIsMissingStaysInTheList(t *testing.T) {
	for name, stop := range map[string]func(*v1beta1.Memcached){
		"paused":      func(m *v1beta1.Memcached) { m.Spec.Paused = true },
		"rejected":    func(m *v1beta1.Memcached) { m.Spec.Version = "1.5.0" },
		"another one": func(*v1beta1.Memcached) {},
	} {
		obs := scaled(t, 3, 3, 3)
		m, key := obs.Memcached, resources.Key{Kind: resources.KindService, Name: "cache-2"}
		stop(m)
		if delete(obs.Objects, key); name == "another one" {
			plantest.AddObject(obs, key, "foreign")
		}
		plantest.Read(obs)
		m.Status = status.Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
		m.Spec.Paused, m.Spec.Version, obs.Rejected, m.Generation = false, "", nil, m.Generation+1
		p := plantest.Plan(obs)
		if got := describe(p.Actions); len(m.Status.Servers) != 3 || p.Scaling.Status != nil || len(p.Actions.ScaleIn) > 0 || slices.Contains(got, "create Service cache-2") == (name == "another one") {
			t.Errorf("%s: servers %q, %+v, then %q", name, m.Status.Servers, p.Scaling.Status, got)
		}
	}
}

// Another message would be another write to the status each time, and its event the next reconcile.
func TestScalingAwaitsTheFirstOfSeveralTransfers(t *testing.T) {
	obs := during(t, 2, 3, v1beta1.ScalingWaiting)
	for _, name := range []string{"c", "a", "b"} {
		takeBackup(obs, name, time.Minute).Status.Phase = v1beta1.TransferRunning
		obs.Restores[name] = observation.Object{APIObject: &v1beta1.MemcachedRestore{Status: v1beta1.MemcachedRestoreStatus{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferRunning}}}}
	}
	if got := plantest.Plan(obs).Scaling.Status.Message; got != "waiting until MemcachedBackup a has finished" {
		t.Error(got)
	}
	obs.Backups = nil
	for range 20 { // by the order of a map
		if got := plantest.Plan(obs).Scaling.Status.Message; got != "waiting until MemcachedRestore a has finished" {
			t.Fatal(got)
		}
	}
}

// An earlier change was withdrawn, and the next one follows before its shard is deleted.
func TestShardThatClientsDontKnowLeavesBeforeItemsMove(t *testing.T) {
	p := plantest.Plan(scaled(t, 4, 3, 2))
	if s := p.Scaling.Status; s == nil || s.From != 3 || s.To != 2 || s.Step != v1beta1.ScalingPreparing {
		t.Errorf("it begins with %+v", s)
	}
	if diff := cmp.Diff([]string{"delete Service cache-3", "delete ReplicaSet cache-3"}, describe(p.Actions)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSizeAppliesWhenAMemcachedContinues(t *testing.T) {
	for _, size := range []int32{2, 4} {
		for name, stops := range map[string]func(*v1beta1.Memcached){
			"paused":        func(m *v1beta1.Memcached) { m.Spec.Paused = true },
			"being deleted": func(m *v1beta1.Memcached) { m.DeletionTimestamp = new(metav1.Now()) },
			"rejected":      func(m *v1beta1.Memcached) { m.Spec.Version = "1.5.0" },
		} {
			t.Run(fmt.Sprintf("%s, to %d", name, size), func(t *testing.T) {
				obs := scaled(t, 3, 3, size)
				m := obs.Memcached
				stops(m)
				plantest.Read(obs)
				if m.Status = status.Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now); len(m.Status.Servers) != 3 || resources.SizesOf(m) != (resources.Sizes{Exist: 3, Listed: 3, Known: 3}) {
					t.Errorf("the servers are %q, the sizes %+v", m.Status.Servers, resources.SizesOf(m))
				}
				if m.Spec.Paused = obs.Paused; resources.Listed(m) != 3 {
					t.Errorf("a backup would copy %d shards", resources.Listed(m))
				}
				m.Spec.Version, m.Spec.Paused, m.DeletionTimestamp = "", false, nil
				if name != "rejected" {
					m.Generation++
				}
				if s := plantest.Plan(obs).Scaling.Status; s == nil || s.From != 3 || s.To != size {
					t.Errorf("the scaling is %+v", s)
				}
			})
		}
	}
}

// reached is the step that a target has completed when the operator's step is completed.
var reached = map[v1beta1.ScalingStep]agentwire.ScalingStep{
	v1beta1.ScalingCopying: agentwire.ScalingCopy, v1beta1.ScalingPublishing: agentwire.ScalingPublished, v1beta1.ScalingClosing: agentwire.ScalingClose,
}

func TestScalingAdvancesWhenAllTargetsHaveCompletedAStep(t *testing.T) {
	next := map[v1beta1.ScalingStep]v1beta1.ScalingStep{
		v1beta1.ScalingCopying: v1beta1.ScalingPublishing, v1beta1.ScalingPublishing: v1beta1.ScalingWaiting, v1beta1.ScalingClosing: v1beta1.ScalingFinishing,
	}
	for step, reports1 := range reached {
		for name, c := range map[string]struct {
			change func(*observation.Observation)
			want   v1beta1.ScalingStep
		}{
			"all have":               {func(*observation.Observation) {}, next[step]},
			"one reports nothing":    {func(obs *observation.Observation) { delete(obs.Answers, "cache-1-x") }, step},
			"one is at another step": {func(obs *observation.Observation) { reports(obs, "cache-1", agentwire.ScalingStatus{Error: "refused"}) }, step},
			"one has another request": {func(obs *observation.Observation) {
				reports(obs, "cache-1", agentwire.ScalingStatus{ID: "former", Step: agentwire.ScalingClose})
			}, step},
			"one has a problem": {func(obs *observation.Observation) {
				reports(obs, "cache-1", agentwire.ScalingStatus{Problem: "no ring", Forgets: true})
			}, map[bool]v1beta1.ScalingStep{true: step, false: next[step]}[step == v1beta1.ScalingClosing]},
			"one has a problem, and no item": {func(obs *observation.Observation) {
				reports(obs, "cache-1", agentwire.ScalingStatus{Problem: "no ring", Forgets: true, Step: agentwire.ScalingClose})
			}, next[step]},
			"one of release 1.1.0 has a problem": {func(obs *observation.Observation) {
				reports(obs, "cache-1", agentwire.ScalingStatus{Problem: "no ring"})
			}, next[step]},
			"all have a problem": {func(obs *observation.Observation) {
				for _, shard := range []string{"cache-0", "cache-1"} {
					reports(obs, shard, agentwire.ScalingStatus{Problem: "no ring", Forgets: true, Step: agentwire.ScalingClose})
				}
			}, v1beta1.ScalingFinishing},
			"one is being deleted": {func(obs *observation.Observation) {
				obs.Pods["cache-1"][0].DeletionTimestamp = &metav1.Time{Time: obs.Now}
			}, step},
			"a restore runs": {func(obs *observation.Observation) {
				obs.Restores["fill"] = observation.Object{APIObject: &v1beta1.MemcachedRestore{Status: v1beta1.MemcachedRestoreStatus{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferRunning}}}}
			}, map[bool]v1beta1.ScalingStep{true: step, false: next[step]}[step == v1beta1.ScalingCopying]},
			"it is paused":         {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, step},
			"the spec is rejected": {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, step},
			"its mode is Cold": {func(obs *observation.Observation) { obs.Memcached.Spec.Scaling.Mode = v1beta1.ScalingCold },
				map[bool]v1beta1.ScalingStep{true: step, false: v1beta1.ScalingFinishing}[step == v1beta1.ScalingCopying]},
			"its mode is Cold, and no shard has copies": {func(obs *observation.Observation) {
				obs.Memcached.Spec.Scaling.Mode = v1beta1.ScalingCold
				reports(obs, "cache-0", agentwire.ScalingStatus{ID: "former"})
				delete(obs.Answers, "cache-1-x")
			}, v1beta1.ScalingFinishing},
		} {
			t.Run(string(step)+", "+name, func(t *testing.T) {
				obs := during(t, 3, 2, step)
				for _, shard := range []string{"cache-0", "cache-1"} {
					reports(obs, shard, agentwire.ScalingStatus{Step: reports1, Moved: 5, Deleted: 1, Purged: 4, StaleSeconds: 0.5})
				}
				c.change(obs)
				p := plantest.Plan(obs)
				s := p.Scaling.Status
				if s.Step != c.want || (s.Problem != "") != (s.Step == v1beta1.ScalingFinishing && (strings.Contains(name, "problem") || strings.Contains(name, "Cold"))) {
					t.Errorf("%+v, want %s", s, c.want)
				}
				if len(p.Actions.ScaleIn) > 0 {
					t.Errorf("%q are deleted", describe(p.Actions))
				}
				if isLast := step == v1beta1.ScalingClosing && (name == "all have" || name == "a restore runs"); isLast != (s.Deleted == 2 && s.Purged == 8 && s.StaleMilliseconds == 500) {
					t.Errorf("%+v", s)
				}
				if s.Step == v1beta1.ScalingWaiting && (s.Moved != 0 || !s.PublishTime.Time.Equal(obs.Now)) || s.Step == v1beta1.ScalingPublishing && name == "all have" && s.Moved != 10 {
					t.Errorf("%+v", s)
				}
			})
		}
	}
}

// Clients know the shards of a step, and the shards of both lists exist from the copy to the end. Drains wait for those that clients can
// know, and for no new one.
func TestSizesFollowTheStepInTheStatus(t *testing.T) {
	for step, c := range map[v1beta1.ScalingStep]struct{ out, in resources.Sizes }{
		v1beta1.ScalingPreparing:  {resources.Sizes{Exist: 2, Listed: 2, Known: 2}, resources.Sizes{Exist: 3, Listed: 3, Known: 3}},
		v1beta1.ScalingCopying:    {resources.Sizes{Exist: 3, Listed: 2, Known: 2}, resources.Sizes{Exist: 3, Listed: 3, Known: 3}},
		v1beta1.ScalingPublishing: {resources.Sizes{Exist: 3, Listed: 2, Known: 2}, resources.Sizes{Exist: 3, Listed: 3, Known: 3}},
		v1beta1.ScalingWaiting:    {resources.Sizes{Exist: 3, Listed: 3, Known: 3}, resources.Sizes{Exist: 3, Listed: 2, Known: 3}},
		v1beta1.ScalingClosing:    {resources.Sizes{Exist: 3, Listed: 3, Known: 3}, resources.Sizes{Exist: 3, Listed: 2, Known: 3}},
		v1beta1.ScalingFinishing:  {resources.Sizes{Exist: 3, Listed: 3, Known: 3}, resources.Sizes{Exist: 2, Listed: 2, Known: 2}},
	} {
		if got := resources.SizesOf(during(t, 2, 3, step).Memcached); got != c.out {
			t.Errorf("%s, out: %+v, want %+v", step, got, c.out)
		}
		if got := resources.SizesOf(during(t, 3, 2, step).Memcached); got != c.in {
			t.Errorf("%s, in: %+v, want %+v", step, got, c.in)
		}
	}
}

func TestTargetsAreRequestedToGetItems(t *testing.T) {
	steps := maps.Clone(reached)
	steps[v1beta1.ScalingWaiting], steps[v1beta1.ScalingPreparing], steps[v1beta1.ScalingFinishing] = agentwire.ScalingPublished, "", ""
	for step, want := range steps {
		for _, c := range []struct {
			from, to int32
			targets  []string
		}{{2, 3, []string{"cache-2"}}, {3, 2, []string{"cache-0", "cache-1"}}} {
			obs := during(t, c.from, c.to, step)
			var got []string
			for _, patch := range plantest.Plan(obs).Actions.Patch {
				metadata := patch.Body["metadata"].(map[string]any)
				if labels, ok := metadata["labels"].(map[string]any); ok {
					metav1.SetMetaDataLabel(&patch.Pod.ObjectMeta, annotations.Listed, labels[annotations.Listed].(string))
				}
				requests, ok := metadata["annotations"].(map[string]any)
				if !ok {
					continue
				}
				text, _ := requests[annotations.Scaling].(string)
				request, err := agentwire.ParseScaling(text)
				if err != nil || request == nil {
					t.Fatalf("%s: %q, %v", step, text, err)
				}
				target := strings.TrimSuffix(patch.Pod.Name, "-x")
				got = append(got, target)
				servers := resources.Options{}.ScalingRequest(obs.Memcached, obs.Memcached.Status.Scaling, request.Ordinal, want)
				if written := request.Written; written != obs.Now.Unix() {
					t.Errorf("%s: shard %s is requested at %d", step, target, written)
				}
				request.Written = 0
				if resources.ShardName("cache", request.Ordinal) != target || request.String() != servers || len(request.From) != int(c.from) || len(request.To) != int(c.to) ||
					len(request.Agents) != int(c.from) || request.Agents[1] != "cache-1.default.svc.cluster.local:11212" || request.To[0] != "cache-0.default.svc.cluster.local:11211" {
					t.Errorf("%s: shard %s is requested: %s", step, target, text)
				}
				patch.Pod.Annotations[annotations.Scaling] = text
			}
			if want == "" {
				c.targets = nil
			}
			if diff := cmp.Diff(c.targets, got); diff != "" {
				t.Errorf("%s from %d to %d (-want +got):\n%s", step, c.from, c.to, diff)
			}
			for _, r := range []struct {
				after  time.Duration
				isRead bool
				want   int
			}{{0, false, 0}, {shard.AnnounceRetry - time.Second, false, 0}, {shard.AnnounceRetry, false, len(c.targets)}, {shard.AnnounceRetry, true, 0}} {
				late := *obs
				late.Now = obs.Now.Add(r.after)
				for _, target := range c.targets {
					if r.isRead {
						reports(&late, target, agentwire.ScalingStatus{Requested: want})
					}
				}
				if again := plantest.Plan(&late).Scaling.Actions.Patch; len(again) != r.want {
					t.Errorf("%s: after %s, read %t, it is repeated by %d", step, r.after, r.isRead, len(again))
				}
			}
			obs.Memcached.Status.Scaling = nil
			obs.Memcached.Status.ObservedGeneration = obs.Memcached.Generation
			plantest.Read(obs)
			withdrawn := agentwire.Scaling{Written: obs.Now.Unix()}.String()
			for _, r := range []struct {
				after time.Duration
				agent *agentwire.ScalingStatus
				want  any // to write; "" is nothing
			}{
				{0, nil, withdrawn}, {0, nil, ""}, {shard.AnnounceRetry - time.Second, &agentwire.ScalingStatus{ID: "id", Requested: want}, ""},
				{shard.AnnounceRetry, &agentwire.ScalingStatus{ID: "id", Requested: want}, agentwire.Scaling{Written: obs.Now.Add(shard.AnnounceRetry).Unix()}.String()},
				{shard.AnnounceRetry, nil, nil}, {0, &agentwire.ScalingStatus{}, nil},
			} {
				late := *obs
				late.Now, late.Answers = obs.Now.Add(r.after), map[string]agentwire.Status{}
				for _, target := range c.targets {
					if r.agent != nil {
						late.Answers[target+"-x"] = agentwire.Status{Phase: agentwire.PhaseServing, Scaling: r.agent}
					}
				}
				var writes []any
				p := plantest.Plan(&late).Scaling.Actions
				for _, patch := range p.Patch {
					writes = append(writes, patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.Scaling])
				}
				if n := len(writes); r.want == "" && (n > 0 || (p.RequeueAfter > 0) != (len(c.targets) > 0)) || r.want != "" && (n != len(c.targets) || n > 0 && writes[0] != r.want) {
					t.Errorf("%s: afterwards, %+v: %q is written, again after %s", step, r, writes, p.RequeueAfter)
				}
				if r.want == withdrawn {
					for _, patch := range p.Patch {
						patch.Pod.Annotations[annotations.Scaling] = withdrawn
					}
				}
			}
		}
	}
}

// A target that starts again would delete by a ring that it hasn't verified.
func TestAnotherHashingEndsTheChangeThatAgentsHaveBegun(t *testing.T) {
	changes := map[string]func(*v1beta1.Hashing){
		"algorithm": func(h *v1beta1.Hashing) { h.Algorithm = v1beta1.HashJump },
		"names":     func(h *v1beta1.Hashing) { h.ServerNameTemplate = "{shard}:11211" },
		"nothing":   func(*v1beta1.Hashing) {},
	}
	want := map[v1beta1.ScalingStep]v1beta1.ScalingStep{
		v1beta1.ScalingCopying: v1beta1.ScalingPreparing, v1beta1.ScalingPublishing: v1beta1.ScalingFinishing,
		v1beta1.ScalingWaiting: v1beta1.ScalingFinishing, v1beta1.ScalingClosing: v1beta1.ScalingFinishing,
	}
	for step := range want {
		for name, change := range changes {
			obs, next := during(t, 2, 3, step), want[step]
			if step == v1beta1.ScalingWaiting {
				obs.Memcached.Status.Scaling.PublishTime = &metav1.Time{Time: obs.Now}
			}
			for _, patch := range plantest.Plan(obs).Actions.Patch {
				patch.Pod.Annotations[annotations.Scaling] = patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.Scaling].(string)
			}
			change(obs.Memcached.Spec.Access.Hashing)
			p := plantest.Plan(obs)
			if name == "nothing" {
				next = step
			}
			if s := p.Scaling.Status; s.Step != next || (s.ID == "id") != (next != v1beta1.ScalingPreparing) || (s.Problem != "") != (next == v1beta1.ScalingFinishing) {
				t.Errorf("%s, another %s: %+v, want %s", step, name, s, next)
			}
			if len(p.Scaling.Actions.Patch) > 0 {
				t.Errorf("%s, another %s: pods get another request before the status says so", step, name)
			}
		}
	}
}

// An operator that didn't see the shard began the next change. The shard has items of keys that aren't its own now.
func TestNewShardOfAnEarlierChangeIsReplaced(t *testing.T) {
	for step, want := range map[v1beta1.ScalingStep]v1beta1.ScalingStep{v1beta1.ScalingCopying: v1beta1.ScalingPreparing, v1beta1.ScalingPublishing: v1beta1.ScalingPublishing} {
		obs := during(t, 2, 4, step)
		obs.Pods["cache-2"][0].Annotations[annotations.Scaling] = agentwire.Scaling{ID: "2-3", Step: agentwire.ScalingCopy}.String()
		if s := plantest.Plan(obs).Scaling.Status; s.Step != want || s.From != 2 || s.To != 4 || (s.ID == "id") != (want == step) {
			t.Errorf("%s: %+v", step, s)
		}
	}
}

// While shards leave, the others have a label: their pods from the beginning, and the headless Service selects it from the publication
// until no pod of the leaving ones serves.
func TestRecordsContainNoShardThatLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		from, to    int32
		step        v1beta1.ScalingStep
		isPublished bool
		label       string // of the pods that stay
		selected    string // by the Service
	}{
		"while items are copied":      {3, 2, v1beta1.ScalingCopying, false, "id", ""},
		"while both lists are used":   {3, 2, v1beta1.ScalingWaiting, true, "id", "id"},
		"while shards are deleted":    {3, 2, v1beta1.ScalingFinishing, true, "id", "id"},
		"without the items":           {3, 2, v1beta1.ScalingFinishing, false, "id", ""},
		"while new shards are listed": {2, 3, v1beta1.ScalingWaiting, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := during(t, c.from, c.to, c.step)
			if !c.isPublished {
				obs.Memcached.Status.Scaling.PublishTime = nil
			}
			metav1.SetMetaDataLabel(&obs.Pods["cache-1"][0].ObjectMeta, annotations.Listed, "former")
			p := plantest.Plan(obs)
			patched := map[string]any{}
			for _, patch := range p.Scaling.Actions.Patch {
				if labels, ok := patch.Body["metadata"].(map[string]any)["labels"].(map[string]any); ok {
					patched[patch.Pod.Name] = labels[annotations.Listed]
				}
			}
			want := map[string]any{}
			if c.label != "" {
				want = map[string]any{"cache-0-x": c.label, "cache-1-x": c.label}
			}
			if diff := cmp.Diff(want, patched); diff != "" {
				t.Errorf("the pods' labels (-want +got):\n%s", diff)
			}
			build := resources.NewBuilder(obs.Memcached, resources.Options{})
			for _, d := range build.Desired(plan.DesiredShards(obs, p.Shards, rollout.Decision{}, "", p.Scaling)) {
				want, got := "", ""
				ordinal, isShards := d.Key.Ordinal("cache")
				switch o := build.Build(d).Apply.(type) {
				case *corev1ac.ServiceApplyConfiguration:
					got = o.Spec.Selector[annotations.Listed]
					if d.Key == resources.HeadlessKey(obs.Memcached) {
						want = c.selected
					}
				case *appsv1ac.ReplicaSetApplyConfiguration:
					got = o.Spec.Template.Labels[annotations.Listed]
					if isShards && ordinal < int(c.to) {
						want = c.label
					}
					if o.Labels[annotations.Listed] != "" || o.Spec.Selector.MatchLabels[annotations.Listed] != "" {
						t.Errorf("%s is selected by the label", d.Key)
					}
				}
				if got != want {
					t.Errorf("%s has %q, want %q", d.Key, got, want)
				}
				if changed := d; want != "" {
					changed.Listed = ""
					if have := obs.Objects[d.Key]; observation.NewVersion(obs.Memcached, d, have) == observation.NewVersion(obs.Memcached, changed, have) {
						t.Errorf("%s is up to date with either label", d.Key)
					}
				}
			}
		})
	}
}

// A pod of a new shard knows from its start that no client may use it before it has its keys.
func TestTemplateOfANewShardHasTheRequest(t *testing.T) {
	obs := during(t, 2, 3, v1beta1.ScalingCopying)
	p := plantest.Plan(obs)
	for ordinal, want := range []bool{false, false, true} {
		d := plan.DesiredShards(obs, p.Shards, rollout.Decision{}, "", p.Scaling)[ordinal]
		if (d.Scaling != "") != want {
			t.Errorf("shard %d: %q", ordinal, d.Scaling)
		}
	}
}

func TestScalingWaitsUntilTheShardsCanTakePart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		step   v1beta1.ScalingStep
		says   string
	}{
		"they can":              {func(*observation.Observation) {}, v1beta1.ScalingCopying, ""},
		"an agent is silent":    {func(obs *observation.Observation) { delete(obs.Answers, "cache-1-x") }, v1beta1.ScalingPreparing, "the agent in pod cache-1-x"},
		"an agent just started": {func(obs *observation.Observation) { obs.Answers["cache-1-x"] = agentwire.Status{} }, v1beta1.ScalingPreparing, "the agent in pod cache-1-x"},
		"an agent is older": {func(obs *observation.Observation) {
			obs.Answers["cache-1-x"] = agentwire.Status{HandoverPort: agentwire.HandoverPort}
		}, v1beta1.ScalingFinishing, "older release"},
		"a pod has no handover": {func(obs *observation.Observation) { delete(obs.Pods["cache-1"][0].Annotations, annotations.Handover) }, v1beta1.ScalingFinishing, "kubectl delete pod cache-1-x"},
		"a shard is missing": {func(obs *observation.Observation) {
			delete(obs.Objects, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-1"})
		}, v1beta1.ScalingPreparing, "waiting for shard cache-1"},
		"a new shard exists already": {func(obs *observation.Observation) {
			plantest.AddObject(obs, resources.Key{Kind: resources.KindReplicaSet, Name: "cache-2"}, "ours")
		}, v1beta1.ScalingPreparing, "waiting until ReplicaSet cache-2 is deleted"},
		"a shard is being updated": {func(obs *observation.Observation) {
			obs.Pods["cache-1"][0].Annotations[annotations.Spec] = strings.Replace(obs.Pods["cache-1"][0].Annotations[annotations.Spec], "1.6.45", "1.6.38", 1)
		}, v1beta1.ScalingPreparing, "waiting for shard cache-1"},
		"another size, before":    {size(5), v1beta1.ScalingPreparing, ""},
		"the former size, before": {size(2), v1beta1.ScalingFinishing, ""},
		"one shard, before":       {size(1), v1beta1.ScalingFinishing, "two shards or more"},
		"the names are too long for": {func(obs *observation.Observation) {
			obs.Memcached.Spec.Access.Hashing.ServerNameTemplate = "{shard}" + strings.Repeat("x", resources.MaxScalingRequest/4)
		}, v1beta1.ScalingFinishing, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			obs := during(t, 2, 3, v1beta1.ScalingPreparing)
			c.change(obs)
			s := plantest.Plan(obs).Scaling.Status
			if s.Step != c.step || !strings.Contains(s.Message+s.Problem, c.says) || c.says == "" && s.Message+s.Problem != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestClientsHaveTheNewList(t *testing.T) {
	discovers := func(obs *observation.Observation, size int32, ago time.Duration) {
		obs.Memcached.Spec.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache
		obs.Memcached.Status.Discovery = &v1beta1.DiscoveryStatus{Size: size, LastChangeTime: metav1.NewTime(obs.Now.Add(-ago))}
	}
	confirms := func(obs *observation.Observation, id string) {
		metav1.SetMetaDataAnnotation(&obs.Memcached.ObjectMeta, v1beta1.AnnotationScaled, id)
	}
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		closes bool
		asks   bool
		after  time.Duration
	}{
		"no one says so":          {func(*observation.Observation) {}, false, true, 30 * time.Second},
		"the user says so":        {func(obs *observation.Observation) { confirms(obs, "id") }, true, false, 0},
		"the user said so before": {func(obs *observation.Observation) { confirms(obs, "former") }, false, true, 30 * time.Second},
		"the time is over":        {func(obs *observation.Observation) { obs.Memcached.Spec.Scaling.SwitchSeconds = new(int32(60)) }, true, false, 0},
		"the time isn't over":     {func(obs *observation.Observation) { obs.Memcached.Spec.Scaling.SwitchSeconds = new(int32(70)) }, false, false, 10 * time.Second},
		"discovery, a minute ago": {func(obs *observation.Observation) { discovers(obs, 3, time.Minute) }, false, false, 30 * time.Second},
		"discovery, three minutes ago": {func(obs *observation.Observation) {
			obs.Memcached.Status.Scaling.PublishTime.Time = obs.Now.Add(-3 * time.Minute)
			discovers(obs, 3, 3*time.Minute)
		}, true, false, 0},
		"discovery lists the new one later": {func(obs *observation.Observation) {
			obs.Memcached.Status.Scaling.PublishTime.Time = obs.Now.Add(-3 * time.Minute)
			discovers(obs, 3, 160*time.Second)
		}, false, false, 20 * time.Second},
		"discovery lists the former ones": {func(obs *observation.Observation) { confirms(obs, "id"); discovers(obs, 2, time.Hour) }, false, false, 2 * time.Second},
		"the records have others": {func(obs *observation.Observation) {
			confirms(obs, "id")
			selects(obs, "former")
		}, false, false, 2 * time.Second},
		"the status lists the former ones": {func(obs *observation.Observation) {
			confirms(obs, "id")
			obs.Memcached.Status.Servers = obs.Memcached.Status.Servers[:2]
		}, false, false, 2 * time.Second},
		"a lost shard is refilled": {func(obs *observation.Observation) {
			confirms(obs, "id")
			obs.Restores["fill"] = observation.Object{APIObject: &v1beta1.MemcachedRestore{Status: v1beta1.MemcachedRestoreStatus{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferRunning}}}}
		}, false, false, 30 * time.Second},
		"a backup has the former list": {func(obs *observation.Observation) {
			confirms(obs, "id")
			takeBackup(obs, "nightly", time.Minute).Status.Phase = v1beta1.TransferRunning
		}, false, false, 30 * time.Second},
		"the spec has another size": {func(obs *observation.Observation) { confirms(obs, "id"); *obs.Memcached.Spec.Size = 2 }, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			obs := during(t, 2, 3, v1beta1.ScalingWaiting)
			c.change(obs)
			p := plantest.Plan(obs).Scaling
			if closes := p.Status.Step == v1beta1.ScalingClosing; closes != c.closes || p.WaitsForUser != c.asks || strings.Contains(p.Status.Message, "kubectl annotate memcached cache -n default cache.memcached-operator.io/scaled=id") != c.asks {
				t.Errorf("it waits for the user: %t, %+v", p.WaitsForUser, p.Status)
			}
			if strings.HasPrefix(p.Status.Message, "publishing") {
				published := during(t, 2, 3, v1beta1.ScalingWaiting)
				published.Memcached.Status.Scaling = p.Status
				if next := plantest.Plan(published).Scaling.Status; p.Status.PublishTime.Time.Equal(obs.Now) || !next.PublishTime.Time.Equal(obs.Now) || next.Step != v1beta1.ScalingWaiting {
					t.Errorf("the time begins with the publication: %+v, then %+v", p.Status, next)
				}
			}
			if !c.closes && p.Actions.RequeueAfter != c.after {
				t.Errorf("again in %s, want %s", p.Actions.RequeueAfter, c.after)
			}
		})
	}
}

// What is requested while items move follows when they have.
func TestNextChangeOfTheSizeFollowsTheFirst(t *testing.T) {
	obs := during(t, 2, 3, v1beta1.ScalingFinishing)
	if s := plantest.Plan(obs).Scaling.Status; s != nil {
		t.Errorf("all shards exist: %+v", s)
	}
	size(2)(obs)
	if s := plantest.Plan(obs).Scaling.Status; s.From != 3 || s.To != 2 || s.Step != v1beta1.ScalingPreparing || s.ID == "id" || s.PublishTime != nil {
		t.Errorf("%+v", s)
	}
	obs.HasRemains = true
	if s := plantest.Plan(obs).Scaling.Status; s.ID != "id" {
		t.Errorf("the next change begins while a pod of this one serves: %+v", s)
	}
	obs.HasRemains, obs.Memcached.Status.Size = false, 2
	if s := plantest.Plan(obs).Scaling.Status; s.Step != v1beta1.ScalingFinishing || resources.SizesOf(obs.Memcached).Exist != 3 {
		t.Errorf("the next change begins before this one is over: %+v", s)
	}
}

func TestUpdatesWaitWhileItemsMove(t *testing.T) {
	for _, step := range []v1beta1.ScalingStep{v1beta1.ScalingPreparing, v1beta1.ScalingWaiting, v1beta1.ScalingFinishing} {
		obs := during(t, 2, 3, step)
		obs.Memcached.Spec.Config.Threads = new(int32(2))
		for _, name := range []string{"cache-0", "cache-1", "cache-2"} {
			if len(obs.Pods[name]) > 0 {
				obs.Agents[name+"-x"] = agentwire.Status{}
			}
		}
		plantest.Read(obs)
		if d := plantest.Plan(obs).Decision; (d.Gate == rollout.GateScaling) != (step != v1beta1.ScalingFinishing) {
			t.Errorf("%s: %+v", step, d)
		}
	}
}

// A new shard isn't ready until it has its items, and no client knows it.
func TestDrainsWaitForNoNewShard(t *testing.T) {
	for step, c := range map[v1beta1.ScalingStep]struct {
		counted []string
		gate    rollout.Gate // of the shard that leaves a node
	}{
		v1beta1.ScalingPublishing: {[]string{"0", "1"}, rollout.GateEmptyStartNotAnnounced},
		v1beta1.ScalingWaiting:    {[]string{"0", "1", "2"}, rollout.GateShardInTransition},
	} {
		obs := during(t, 2, 3, step)
		obs.Pods["cache-0"][0].Annotations[v1beta1.AnnotationMove] = annotations.NodeLeaves + "node1"
		obs.Pods["cache-2"][0].Status.Conditions = nil
		p := plantest.Plan(obs)
		if p.Decision.Shard != "cache-0" || p.Decision.Gate != c.gate {
			t.Errorf("%s: the decision is %+v", step, p.Decision)
		}
		build := resources.NewBuilder(obs.Memcached, resources.Options{})
		for _, d := range build.Desired(plan.DesiredShards(obs, p.Shards, rollout.Decision{}, "", p.Scaling)) {
			budget, ok := build.Build(d).Apply.(*policyv1ac.PodDisruptionBudgetApplyConfiguration)
			if !ok {
				continue
			}
			var selector metav1.LabelSelector
			raw, err := json.Marshal(budget.Spec.Selector)
			if err := errors.Join(err, json.Unmarshal(raw, &selector)); err != nil {
				t.Fatal(err)
			}
			selects, err := metav1.LabelSelectorAsSelector(&selector)
			if err != nil {
				t.Fatal(err)
			}
			var counted []string
			for _, pod := range []string{"0", "1", "2"} {
				of := resources.Labels("cache")
				of[v1beta1.LabelShard] = pod
				if selects.Matches(labels.Set(of)) {
					counted = append(counted, pod)
				}
			}
			if !slices.Equal(counted, c.counted) {
				t.Errorf("%s: the budget counts %q", step, counted)
			}
			if have := obs.Objects[d.Key]; obs.UpToDate[d.Key] == observation.NewVersion(obs.Memcached, d, have) != (step == v1beta1.ScalingWaiting) {
				t.Errorf("%s: the budget of all shards is up to date", step)
			}
		}
	}
}
