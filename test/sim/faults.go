package sim

import (
	"maps"
	"slices"

	"github.com/memcached-operator/memcached-operator/internal/simtest"
	"k8s.io/apimachinery/pkg/types"
)

// crash kills a memcached, which loses its items: its container starts again.
func (w *World) crash() {
	var running []types.UID
	for _, uid := range slices.Sorted(maps.Keys(w.Procs)) {
		if w.Procs[uid].Runs {
			running = append(running, uid)
		}
	}
	if len(running) == 0 {
		return
	}
	w.crashOf(w.Procs[running[w.Rand.IntN(len(running))]])
}

// crashOf kills the memcached of one pod.
func (w *World) crashOf(p *simtest.Proc) {
	pod := w.PodOf(p)
	w.log("fault", "memcached in pod %s crashes", p.Pod)
	w.watch.Out(pod, simtest.ByFault)
	p.Crash()
}

// turn takes a node away, or returns it.
func (w *World) turn(n *simtest.Node) {
	n.Down, n.Since = !n.Down, w.Clock.Now()
	if n.Down {
		w.log("fault", "%s does not answer", n.Name)
		return
	}
	w.log("fault", "%s is back", n.Name)
}
