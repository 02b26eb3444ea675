package memcached

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/observation"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// AgentClient queries the agents of shards.
type AgentClient interface {
	// Status returns the status that the agent of the pod with that address reports.
	Status(ctx context.Context, podIP string) (agentwire.Status, error)
}

// parallelQueries bounds the connections of a reconcile to agents: an answer may have 64 KiB.
const parallelQueries = 32

// query is the query of an agent.
type query struct {
	// begun is false if the reconcile didn't query the agent, late is true if it waited in vain for the answer.
	begun, late bool
	status      agentwire.Status
	err         error
}

// queryAgents queries the agents of observation.AgentsToQuery, in parallel and for at most a time in total, 0 for any. Those that let
// the last reconcile wait come last, and are not queried before observation.Silence.IsOver.
func queryAgents(ctx context.Context, agents AgentClient, most time.Duration, obs *observation.Observation) {
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	pods, silences := observation.AgentsToQuery(obs), obs.Silences
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return silences[a.UID].QueriedAt.Compare(silences[b.UID].QueriedAt)
	})
	queries := make([]query, len(pods))
	var group errgroup.Group
	group.SetLimit(parallelQueries)
	for i, pod := range pods {
		if silence, ok := silences[pod.UID]; ok && !silence.IsOver(obs.Now) {
			continue
		}
		group.Go(func() error {
			if ctx.Err() == nil {
				status, err := agents.Status(ctx, pod.Status.PodIP)
				queries[i] = query{begun: true, late: err != nil && ctx.Err() != nil, status: status, err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // the errors are in queries
	obs.Silences, obs.Answers = map[types.UID]observation.Silence{}, map[string]agentwire.Status{}
	for i, pod := range pods {
		silence, wasSilent := silences[pod.UID]
		useAnswer(obs, pod, queries[i], silence, wasSilent)
	}
}

// useAnswer adds to an observation what follows from the query of an agent.
func useAnswer(obs *observation.Observation, pod *corev1.Pod, q query, silence observation.Silence, wasSilent bool) {
	switch {
	case q.late:
		obs.Silences[pod.UID] = silence.After(obs.Now)
	case wasSilent && !q.begun:
		obs.Silences[pod.UID] = silence
	}
	switch {
	case !q.begun && !wasSilent: // the next reconcile queries it
	case !q.begun, q.err != nil:
		obs.Unreachable[pod.Name] = shard.IsReady(pod)
	case q.status.PodUID == string(pod.UID):
		obs.Answers[pod.Name] = shard.Bounded(q.status)
		if shard.IsLatestStart(q.status, pod) { // otherwise the operator queries it again
			obs.Agents[pod.Name] = obs.Answers[pod.Name]
		}
	}
}
