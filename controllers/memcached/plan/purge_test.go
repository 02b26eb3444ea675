package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// purging returns an observation of two shards whose Memcached has the annotation, and a status of it in a phase.
func purging(t *testing.T, value, request string, phase v1beta1.TransferPhase) *observation.Observation {
	obs := scaled(t, 2, 2, 2)
	m := obs.Memcached
	m.Status.ObservedGeneration = m.Generation
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1beta1.AnnotationPurge, value)
	if request != "" {
		m.Status.Purge = &v1beta1.PurgeStatus{Request: request, Phase: phase, StartTime: metav1.Unix(5, 0), Shards: make([]v1beta1.PurgedShard, 2)}
	}
	plantest.Read(obs)
	return obs
}

func TestPurgeIsRequestedOnceForEachValue(t *testing.T) {
	const pending, running, complete, failed = v1beta1.TransferPending, v1beta1.TransferRunning, v1beta1.TransferComplete, v1beta1.TransferFailed
	for name, c := range map[string]struct {
		value, was string
		phase      v1beta1.TransferPhase
		want       v1beta1.TransferPhase
		says       string
	}{
		"no annotation":             {"", "DryRun-1", complete, "", ""},
		"a dry run":                 {"DryRun-1", "", "", pending, ""},
		"another dry run":           {"DryRun-2", "DryRun-1", running, pending, ""},
		"the same value":            {"DryRun-1", "DryRun-1", complete, complete, ""},
		"after a dry run":           {"Delete-1", "DryRun-1", complete, pending, ""},
		"after another one":         {"Delete-2", "DryRun-1", complete, failed, "DryRun-2 isn't complete"},
		"after one of other shards": {"Delete-1", "DryRun-1", complete, failed, "DryRun-1 isn't complete for these shards"},
		"before it is complete":     {"Delete-1", "DryRun-1", running, failed, "DryRun-1 isn't complete"},
		"without a dry run":         {"Delete-1", "", "", failed, "first set the annotation"},
		"twice":                     {"Delete-1", "Delete-1", complete, complete, ""},
		"no ID":                     {"DryRun-", "", "", failed, "neither DryRun-<id> nor"},
		"another word":              {"now", "", "", failed, "neither DryRun-<id> nor"},
		"an ID with the other word": {"Delete-DryRun-1", "DryRun-1", complete, failed, "DryRun-DryRun-1 isn't complete"},
	} {
		t.Run(name, func(t *testing.T) {
			obs := purging(t, c.value, c.was, c.phase)
			if name == "after one of other shards" {
				obs.Memcached.Status.Purge.Shards = make([]v1beta1.PurgedShard, 3)
			}
			p := plantest.Plan(obs)
			s := p.Scaling.Purge
			if c.want == "" {
				if s != nil {
					t.Errorf("%+v", s)
				}
				return
			}
			if s == nil || s.Request != c.value || s.Phase != c.want || len(s.Shards) != 2 || !strings.Contains(s.Message, c.says) || (s.Message != "") != (c.says != "") {
				t.Errorf("%+v, want phase %s and %q", s, c.want, c.says)
			}
			if len(p.Actions.Patch) > 0 {
				t.Errorf("before the status says so, %q", describe(p.Actions))
			}
		})
	}
}

func TestPurgeWaitsOrSaysWhatToDo(t *testing.T) {
	const again = ". Then set the annotation cache.memcached-operator.io/purge to DryRun- with another ID"
	for name, c := range map[string]struct {
		change func(*observation.Observation)
		phase  v1beta1.TransferPhase
		says   string
	}{
		"ready":              {func(*observation.Observation) {}, v1beta1.TransferRunning, ""},
		"mode Cold":          {func(obs *observation.Observation) { obs.Memcached.Spec.Scaling.Mode = v1beta1.ScalingCold }, v1beta1.TransferRunning, ""},
		"paused":             {func(obs *observation.Observation) { obs.Memcached.Spec.Paused = true }, v1beta1.TransferPending, "until spec.paused is false"},
		"rejected":           {func(obs *observation.Observation) { obs.Memcached.Spec.Version = "1.5.0" }, v1beta1.TransferPending, "a valid spec"},
		"no hashing":         {func(obs *observation.Observation) { obs.Memcached.Spec.Access.Hashing = nil }, v1beta1.TransferFailed, "set spec.access.hashing to what your clients use" + again},
		"an agent is silent": {func(obs *observation.Observation) { delete(obs.Answers, "cache-1-x") }, v1beta1.TransferPending, "waiting for the agent in pod cache-1-x"},
		"an agent is older": {func(obs *observation.Observation) {
			obs.Answers["cache-1-x"] = agentwire.Status{HandoverPort: agentwire.HandoverPort}
		}, v1beta1.TransferFailed, "older release"},
		"a shard is being updated": {func(obs *observation.Observation) {
			obs.Pods["cache-1"][0].Annotations[annotations.Spec] = strings.Replace(obs.Pods["cache-1"][0].Annotations[annotations.Spec], "1.6.45", "1.6.38", 1)
		}, v1beta1.TransferPending, "waiting for shard cache-1"},
		"a restore runs": {func(obs *observation.Observation) {
			obs.Restores["fill"] = observation.Object{APIObject: &v1beta1.MemcachedRestore{Status: v1beta1.MemcachedRestoreStatus{TransferStatus: v1beta1.TransferStatus{Phase: v1beta1.TransferRunning}}}}
		}, v1beta1.TransferPending, "MemcachedRestore fill"},
		"a list was just published": {func(obs *observation.Observation) {
			obs.Memcached.Status.Discovery = &v1beta1.DiscoveryStatus{LastChangeTime: metav1.NewTime(obs.Now.Add(-179 * time.Second))}
		}, v1beta1.TransferPending, "all clients have the new list"},
		"a list was published": {func(obs *observation.Observation) {
			obs.Memcached.Status.Discovery = &v1beta1.DiscoveryStatus{LastChangeTime: metav1.NewTime(obs.Now.Add(-180 * time.Second))}
		}, v1beta1.TransferRunning, ""},
		"items move": {func(obs *observation.Observation) {
			obs.Memcached.Status.Scaling = &v1beta1.ScalingStatus{From: 2, To: 2, Step: v1beta1.ScalingFinishing}
		}, v1beta1.TransferFailed, "the number of shards changes"},
		"items will move": {func(obs *observation.Observation) {
			*obs.Memcached.Spec.Size, obs.Memcached.Status.ObservedGeneration = 3, obs.Memcached.Generation-1
		}, v1beta1.TransferFailed, "the number of shards changes"},
		"the dry run was of other shards": {func(obs *observation.Observation) { obs.Memcached.Status.Purge.Shards = make([]v1beta1.PurgedShard, 3) }, v1beta1.TransferFailed, "the number of shards changes"},
		"it is being deleted":             {func(obs *observation.Observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: obs.Now} }, v1beta1.TransferPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := purging(t, "DryRun-1", "DryRun-1", v1beta1.TransferPending)
			c.change(obs)
			p := plantest.Plan(obs)
			if s := p.Scaling.Purge; s.Phase != c.phase || !strings.Contains(s.Message, c.says) || (s.Message != "") != (c.says != "") {
				t.Errorf("%+v, want phase %s and %q", s, c.phase, c.says)
			}
			again := 2 * time.Second
			if c.phase == v1beta1.TransferPending && c.says != "" && name != "an agent is silent" {
				again = 30 * time.Second
			}
			if p.Scaling.Actions.RequeueAfter != again || len(p.Scaling.Actions.Patch) > 0 {
				t.Errorf("again in %s, and %q", p.Scaling.Actions.RequeueAfter, describe(p.Scaling.Actions))
			}
		})
	}
}

func TestPurgeIsDoneWhenAllShardsAre(t *testing.T) {
	for value, step := range map[string]agentwire.ScalingStep{"DryRun-1": agentwire.ScalingCount, "Delete-1": agentwire.ScalingPurge} {
		done := agentwire.ScalingStatus{ID: value + "-5", Step: step, Purged: 1000, PurgedBytes: 5000}
		for name, c := range map[string]struct {
			second agentwire.ScalingStatus
			phase  v1beta1.TransferPhase
			says   map[string]string
		}{
			"both": {done, v1beta1.TransferComplete, map[string]string{"Delete-1": "deleted 2,000 items of 10,000 bytes",
				"DryRun-1": "2,000 items of 10,000 bytes would be deleted; to delete them, run: kubectl annotate memcached cache -n default cache.memcached-operator.io/purge=Delete-1 --overwrite"}},
			"not yet":         {agentwire.ScalingStatus{ID: done.ID}, v1beta1.TransferRunning, map[string]string{value: "waiting for shard cache-1"}},
			"another step":    {agentwire.ScalingStatus{ID: done.ID, Step: agentwire.ScalingCopy}, v1beta1.TransferRunning, map[string]string{value: "waiting for shard cache-1"}},
			"another request": {agentwire.ScalingStatus{ID: value + "-4", Step: step}, v1beta1.TransferRunning, map[string]string{value: "waiting for shard cache-1"}},
			"no ring":         {agentwire.ScalingStatus{ID: done.ID, Problem: "no ring"}, v1beta1.TransferFailed, map[string]string{value: "shard cache-1: no ring. Then set"}},
		} {
			t.Run(value+", "+name, func(t *testing.T) {
				obs := purging(t, value, value, v1beta1.TransferRunning)
				reports(obs, "cache-0", done)
				reports(obs, "cache-1", c.second)
				p := plantest.Plan(obs)
				s := p.Scaling.Purge
				if want := (v1beta1.PurgedShard{Items: 1000, Bytes: 5000}); s.Phase != c.phase || !strings.Contains(s.Message, c.says[value]) || s.Shards[0] != want || s.Shards[1].Items != c.second.Purged {
					t.Errorf("%+v, want phase %s and %q", s, c.phase, c.says[value])
				}
				for ordinal, patch := range p.Scaling.Actions.Patch {
					text, _ := patch.Body["metadata"].(map[string]any)["annotations"].(map[string]any)[annotations.Scaling].(string)
					request, err := agentwire.ParseScaling(text)
					if err != nil || request == nil || request.ID != done.ID || request.Step != step || request.Ordinal != ordinal || fmt.Sprint(request.From) != fmt.Sprint(request.To) || len(request.To) != 2 {
						t.Errorf("%s is requested: %s", patch.Pod.Name, text)
					}
					patch.Pod.Annotations[annotations.Scaling] = text
				}
				obs.Memcached.Status.Purge = s
				if again := plantest.Plan(obs).Scaling.Actions.Patch; (len(again) > 0) == s.IsActive() || len(p.Scaling.Actions.Patch) != 2 {
					t.Errorf("%d requests, and then %d changes", len(p.Scaling.Actions.Patch), len(again))
				}
			})
		}
	}
}
