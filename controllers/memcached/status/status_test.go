package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan/plantest"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Until then, the agent reports the start before the restart, whose items were lost since.
func TestStartIsReportedWhenTheRestartIsDone(t *testing.T) {
	old, update := shardtest.Revision(t), shardtest.Revision(t, shardtest.Version("1.6.38"))
	for container, want := range map[string]v1beta1.StartResult{shardtest.RunningContainer: v1beta1.StartCold, "before": v1beta1.StartWarm} {
		f := plantest.NewShard(old, update, update)
		f.Record(shard.UpdateRecord{Revision: update.Hash(), From: old.Hash(), At: time.Unix(999, 0), Method: rollout.Recreate, Container: container})
		arguments := update.Arguments
		f.Agents["first"] = agentwire.Status{Version: "1.6.38", Arguments: arguments, Start: agentwire.Start{Result: agentwire.StartWarm, At: time.Unix(990, 0)}}
		f.Memcached.Status.Shards = []v1beta1.ShardStatus{{Name: "cache-0", StartResult: v1beta1.StartCold}}
		p := f.Plan(rollout.Decision{Shard: "cache-0", Step: rollout.StepAwait})
		if got := shardStatus(f.Observation, p, plan.Result{}, "cache-0"); got.StartResult != want {
			t.Errorf("the restart stops container %s: start %s, want %s", container, got.StartResult, want)
		}
	}
}

func TestAgentVersionIsReportedAndRemembered(t *testing.T) {
	revision := shardtest.Revision(t)
	f := plantest.NewShard(revision, revision, revision)
	version := func() string {
		return shardStatus(f.Observation, f.Plan(rollout.Decision{}), plan.Result{}, "cache-0").AgentVersion
	}
	f.Memcached.Status.Shards = []v1beta1.ShardStatus{{Name: "cache-0", AgentVersion: "1.0.0"}}
	if got := version(); got != "1.0.0" {
		t.Errorf("before the agent answers: %q", got)
	}
	f.Agents["first"] = agentwire.Status{AgentVersion: "1.1.0", Start: agentwire.Start{At: time.Unix(990, 0)}}
	if got := version(); got != "1.1.0" {
		t.Errorf("after it: %q", got)
	}
	f.Agents["first"] = agentwire.Status{AgentVersion: strings.Repeat("9", 1000), Start: agentwire.Start{At: time.Unix(990, 0)}}
	if got := version(); len(got) > v1beta1.MaxAgentVersion {
		t.Errorf("%d bytes", len(got))
	}
}

func TestVersionIsTheOldestThatAShardRuns(t *testing.T) {
	for name, c := range map[string]struct {
		running         []string // by the shards; empty before one reports it
		target          string   // by the tag of the image
		rejected        bool
		version, differ string
	}{
		"no shard":                            {nil, "1.6.45", false, "", "1.6.45"},
		"no shard has reported it":            {[]string{"", ""}, "1.6.45", false, "", "1.6.45"},
		"all shards run the target":           {[]string{"1.6.45", "1.6.45"}, "1.6.45", false, "1.6.45", ""},
		"a shard hasn't reported it":          {[]string{"", "1.6.45"}, "1.6.45", false, "1.6.45", ""},
		"an update begins":                    {[]string{"1.6.45", "1.6.45"}, "1.6.100", false, "1.6.45", "1.6.100"},
		"an update goes on":                   {[]string{"1.6.100", "1.6.45"}, "1.6.100", false, "1.6.45", "1.6.100"},
		"an update to an older one goes on":   {[]string{"1.6.45", "1.6.100"}, "1.6.45", false, "1.6.45", ""},
		"the tag doesn't say it":              {[]string{"1.6.38"}, "", false, "1.6.38", ""},
		"the spec is rejected":                {[]string{"1.6.38"}, "1.5.0", true, "1.6.38", ""},
		"a version that isn't one is ignored": {[]string{"custom", "1.6.38"}, "1.6.38", false, "1.6.38", ""},
		"only a version that isn't one":       {[]string{"custom"}, "", false, "custom", ""},
	} {
		obs := plantest.Running(t, int32(len(c.running))) //nolint:gosec // few
		for i, v := range c.running {
			obs.Memcached.Status.Shards[i].Version = v
		}
		p := plantest.Plan(obs)
		if obs.Image.Version = c.target; c.rejected {
			obs.Rejected = &shard.Problem{}
		}
		if s := Make(obs, p, plan.Result{}, obs.Now); s.Version != c.version || s.TargetVersion != c.differ {
			t.Errorf("%s: %q, target %q; want %q, target %q", name, s.Version, s.TargetVersion, c.version, c.differ)
		}
	}
}

func TestMessageOfAShardIsBounded(t *testing.T) {
	obs := plantest.Observation(1, "valid", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"starting", "none"})
	obs.Pods["cache-0"][0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: resources.Container, Image: "i:1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: strings.Repeat("€", 1000)}}}}
	s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
	message := s.Shards[0].Message
	if len(message) > 128 || len(message) < 124 || !strings.HasPrefix(message, "image i:1: ImagePullBackOff: €") || !strings.HasSuffix(message, "€…") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
	i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionDegraded })
	if message := s.Conditions[i].Message; len(message) > v1beta1.MaxMessage || len(message) < v1beta1.MaxMessage-4 {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

func TestUpdatedShardsCountsDesiredShardsWithTheUpdateRevision(t *testing.T) {
	obs := plantest.Observation(1, "valid", [2]string{"ours", "ours"}, [2]string{"ours", "ours"}, [2]string{"ready", "ready"})
	if s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now); s.UpdatedShards != 1 || s.Size != 2 {
		t.Errorf("%d of %d shards are updated, want 1 desired one", s.UpdatedShards, s.Size)
	}
}

func TestUpdateMessageSaysWhyTheKubeletHasNotResizedThePod(t *testing.T) {
	d := rollout.Next(rollout.Input{Shards: []rollout.Shard{{
		Name: "cache-0", Target: "b", Template: "a", Pod: rollout.Pod{State: rollout.Serving, Revision: "a", Outcome: rollout.Verified},
		ToTarget: rollout.Change{Method: rollout.Restart, Description: "tls", Resize: rollout.Underway, ResizeReason: "node1 has no room for it yet"},
	}}})
	if got, want := updateMessage(d, 2, 1, time.Now()), "shard 1 of 2: tls: node1 has no room for it yet"; got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

// They serve until their Services are deleted, but clients must not start to use them.
func TestServersAreThoseOfTheDesiredShards(t *testing.T) {
	obs := plantest.Observation(1, "valid", [2]string{"ours", "ours"}, [2]string{"ours", "ours"}, [2]string{"starting", "ready"})
	s := Make(obs, plantest.Plan(obs), plan.Result{}, obs.Now)
	if s.ReadyShards != 0 {
		t.Errorf("%d ready", s.ReadyShards)
	}
	if want := plantest.Options.Server("default", "cache-0"); len(s.Servers) != 1 || s.Servers[0] != want {
		t.Errorf("servers %q, want only %s", s.Servers, want)
	}
	if len(s.Shards) != 2 {
		t.Errorf("status of %d shards, want 2", len(s.Shards))
	}
}
