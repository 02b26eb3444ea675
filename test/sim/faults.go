package sim

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// crash kills a memcached, which loses its items: its container starts again.
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
	w.log("fault", "memcached in pod %s crashes", p.pod)
	w.watch.out(pod, byFault)
	p.serves, p.items, p.saved, p.used = false, 0, savedItems{}, ""
	p.containers++
	p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "it crashed", At: w.clock.Now()}
	w.writeStatus(p)
}

// troubleNode takes a node away, or returns it.
func (w *World) troubleNode() {
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	n.down, n.since = !n.down, w.clock.Now()
	if n.down {
		w.log("fault", "%s does not answer", n.name)
		return
	}
	w.log("fault", "%s is back", n.name)
}

// heal returns every node that a fault took away, and has kubelets bring what they missed.
func (w *World) heal() {
	for _, p := range w.procs {
		p.missed = nil
	}
	for _, n := range w.nodes {
		n.down = false
	}
}
