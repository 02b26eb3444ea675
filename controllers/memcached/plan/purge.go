package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// purge decides how a request to purge items continues: that of the annotation, once for each value. As in a scaling, the status has a phase
// before anything depends on it. The dry run isn't one of another list of servers, so a change of the number of shards stops a purge.
func (p *Scaling) purge(obs *observation.Observation, shards []shard.State, options resources.Options) {
	m := obs.Memcached
	value := text.Truncate(m.Annotations[v1beta1.AnnotationPurge], v1beta1.MaxPurgeRequest)
	switch was := m.Status.Purge; {
	case value == "":
		return
	case m.DeletionTimestamp == nil && (was == nil || was.Request != value):
		p.Purge = beginPurge(m, value, obs.Now)
	default:
		p.Purge = was.DeepCopy()
		p.advancePurge(obs, shards, options)
	}
	if (m.Status.Purge.IsActive() || p.Purge.IsActive()) && p.Actions.RequeueAfter == 0 { // the requests of the pods are removed after the status says that it is done
		p.Actions.RequeueAfter = scalingPoll
	}
	if p.Purge != nil {
		p.Purge.Message = text.Truncate(p.Purge.Message, v1beta1.MaxMessage)
	}
}

// parsePurge returns the ID of a request, and whether it deletes. The ID is empty if it is no request.
func parsePurge(value string) (id string, deletes bool) {
	if id, deletes = strings.CutPrefix(value, v1beta1.PurgeDelete); deletes {
		return id, true
	}
	if id, counts := strings.CutPrefix(value, v1beta1.PurgeDryRun); counts {
		return id, false
	}
	return "", false
}

// beginPurge returns the status of a new request.
func beginPurge(m *v1beta1.Memcached, value string, now time.Time) *v1beta1.PurgeStatus {
	s := &v1beta1.PurgeStatus{Request: value, Phase: v1beta1.TransferPending, StartTime: v1beta1.Time(now), Shards: make([]v1beta1.PurgedShard, resources.Size(m))}
	id, deletes := parsePurge(value)
	switch was := m.Status.Purge; {
	case id == "":
		s.Phase, s.Message = v1beta1.TransferFailed, fmt.Sprintf("the annotation %s is neither %s<id> nor %s<id>; set it to %s1", v1beta1.AnnotationPurge, v1beta1.PurgeDryRun, v1beta1.PurgeDelete, v1beta1.PurgeDryRun)
	case deletes && (was == nil || was.Request != v1beta1.PurgeDryRun+id || was.Phase != v1beta1.TransferComplete || len(was.Shards) != len(s.Shards)):
		s.Phase, s.Message = v1beta1.TransferFailed, fmt.Sprintf("%s%s isn't complete for these shards; first set the annotation %s to it", v1beta1.PurgeDryRun, id, v1beta1.AnnotationPurge)
	}
	return s
}

func (p *Scaling) advancePurge(obs *observation.Observation, shards []shard.State, options resources.Options) {
	m, s := obs.Memcached, p.Purge
	if !s.IsActive() || m.DeletionTimestamp != nil {
		return
	}
	size := resources.Size(m)
	id, deletes := parsePurge(s.Request)
	step := agentwire.ScalingCount
	if deletes {
		step = agentwire.ScalingPurge
	}
	fail := func(problem string) {
		s.Phase, s.Message = v1beta1.TransferFailed, fmt.Sprintf("%s. Then set the annotation %s to %s with another ID", problem, v1beta1.AnnotationPurge, v1beta1.PurgeDryRun)
	}
	change := &v1beta1.ScalingStatus{ID: fmt.Sprintf("%s-%d", s.Request, s.StartTime.Unix()), From: size, To: size}
	switch reason := resources.ColdReason(m, size, size); {
	case m.Status.Scaling != nil || len(s.Shards) != int(size):
		fail("the number of shards changes; wait until it has, and status.scaling is absent")
	case reason != "":
		fail(reason)
	case len(options.ScalingRequest(m, change, 0, step)) > resources.MaxScalingRequest:
		fail("the names of the servers are too long; shorten spec.access.hashing.serverNameTemplate")
	case s.Phase == v1beta1.TransferPending:
		reports := preparation(obs, shards)
		switch s.Message = awaitedByPurge(obs); {
		case s.Message != "":
		case reports.problem != "":
			fail(reports.problem)
		case reports.waiting != "":
			s.Message = reports.waiting
		default:
			s.Phase = v1beta1.TransferRunning
		}
		if s.IsActive() && s.Message != "" && !reports.polls { // a watch announces it, mostly
			p.Actions.RequeueAfter = switchPoll
		}
	default:
		var waiting, problem string
		var sum v1beta1.PurgedShard
		for ordinal, name := range obs.Names {
			p.requests[ordinal] = options.ScalingRequest(m, change, ordinal, step)
			report := reportOf(obs, shard.Named(shards, name), change.ID)
			switch {
			case report.Problem != "":
				problem = fmt.Sprintf("shard %s: %s", name, report.Problem)
			case report.Step != step:
				waiting = name
			}
			s.Shards[ordinal] = v1beta1.PurgedShard{Items: report.Purged, Bytes: report.PurgedBytes}
			sum.Items, sum.Bytes = sum.Items+report.Purged, sum.Bytes+report.PurgedBytes
		}
		of := fmt.Sprintf("%s items of %s bytes", text.Thousands(sum.Items), text.Thousands(sum.Bytes))
		switch {
		case waiting != "":
			s.Message = "waiting for shard " + waiting
		case problem != "":
			fail(problem)
		case deletes:
			s.Phase, s.Message = v1beta1.TransferComplete, "deleted "+of
		default:
			s.Phase, s.Message = v1beta1.TransferComplete, fmt.Sprintf("%s would be deleted; to delete them, run: kubectl annotate memcached %s -n %s %s=%s%s --overwrite",
				of, m.Name, m.Namespace, v1beta1.AnnotationPurge, v1beta1.PurgeDelete, id)
		}
	}
}

// awaitedByPurge returns what a purge waits for, beside the shards.
func awaitedByPurge(obs *observation.Observation) string {
	m := obs.Memcached
	switch transfer := cmp.Or(awaitedBackup(obs), awaitedRestore(obs)); {
	case obs.Paused:
		return "waiting until spec.paused is false"
	case obs.Rejected != nil:
		return "waiting for a valid spec; the condition Degraded says why it isn't"
	case transfer != "":
		return transfer
	}
	if d := m.Status.Discovery; d != nil {
		if at := d.LastChangeTime.Add(v1beta1.Seconds(m.Spec.Scaling.SwitchSeconds, discoverySwitch)); obs.Now.Before(at) {
			return fmt.Sprintf("waiting until %s, when all clients have the new list", at.UTC().Format(time.RFC3339))
		}
	}
	return ""
}
