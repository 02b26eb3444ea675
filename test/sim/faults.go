package sim

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// crash kills a memcached, whose items are gone: its container starts again.
func (w *World) crash() {
	var running []types.UID
	for _, uid := range slices.Sorted(maps.Keys(w.procs)) {
		if w.procs[uid].runs {
			running = append(running, uid)
		}
	}
	if len(running) == 0 {
		return
	}
	w.crashOf(w.procs[running[w.rng.IntN(len(running))]])
}

// crashOf kills the memcached of one pod.
func (w *World) crashOf(p *proc) {
	pod := w.podOf(p)
	w.tell("fault", "memcached in pod %s crashes", p.pod)
	w.watch.out(pod, byFault)
	p.serves, p.items, p.saved, p.used = false, 0, savedItems{}, ""
	p.containers++
	p.start = agentapi.Start{Result: agentapi.StartCold, Reason: "it crashed", At: w.clock.Now()}
	w.writeStatus(p)
}

// troubleNode takes a node away, or brings it back.
func (w *World) troubleNode() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	n.down, n.since = !n.down, w.clock.Now()
	if n.down {
		w.tell("fault", "%s does not answer", n.name)
		return
	}
	w.tell("fault", "%s is back", n.name)
}

// heal brings everything back that a fault took away.
func (w *World) heal() {
	for _, n := range w.nodes {
		n.down = false
	}
}
