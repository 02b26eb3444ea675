package sim

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/memcached-operator/memcached-operator/internal/simtest"
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

// evict has a kubelet end a pod.
func (w *World) evict() {
	isIdle := func(pod *corev1.Pod) bool { p := w.Procs[pod.UID]; return p == nil || w.NodeOf(p).Down }
	if pods := slices.DeleteFunc(w.livePods(), isIdle); len(pods) > 0 {
		pod := pods[w.Rand.IntN(len(pods))]
		w.log("fault", "the kubelet evicts pod %s", pod.Name)
		w.Evict(pod)
	}
}

// lag is how late a watch of the ReplicaSet controller is.
func (w *World) lag(k simtest.Kind) time.Duration {
	if !w.faulty(w.faults.late) {
		return 0
	}
	d := time.Duration(1+w.Rand.IntN(500)) * time.Millisecond * []time.Duration{40, 5, 5, 5, 1, 1, 1, 1, 1, 1}[w.Rand.IntN(10)]
	w.log("fault", "the ReplicaSet controller sees no changes of %s for %s", k, d)
	return d
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
