package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// Cluster is what runs around an API server: the controllers of Kubernetes, three nodes, and the agents and memcacheds of
// their pods. Nothing happens by itself.
type Cluster struct {
	Server *Server
	Clock  *testclock.FakeClock
	// Rand decides about names and UIDs.
	Rand  *rand.Rand
	Nodes []*Node
	Procs map[types.UID]*Proc
	// Certificate that the Secrets have.
	Certificate string
	// Unproven is whether clients use another ring than the spec says.
	Unproven bool
	// Misses reports whether a kubelet misses a change of a pod's annotations, until they change again.
	Misses func() bool
	// Lags returns for how long the ReplicaSet controller's watch of a kind brings no changes; 0 is not at all.
	Lags func(k Kind) time.Duration
	// Binds puts a pod on a node where an update cannot; nil updates the pod.
	Binds   func(pod *corev1.Pod, node string) error
	Watcher Watcher
	// Pods that each ReplicaSet has created.
	Pods map[string]int

	made        int
	replicaSets replicaSets
	// began is when transfers began to run.
	began map[types.UID]time.Time
}

// By is what stops a pod.
type By string

// What stops a pod.
const (
	ByOperator   By = "the operator"
	ByReplicaSet By = "its ReplicaSet"
	ByCollector  By = "the garbage collector"
	ByFault      By = "a fault"
)

// Watcher is notified of what no object shows.
type Watcher interface {
	// Deletes is called before an object is deleted.
	Deletes(o client.Object, by By)
	// Out is called when a pod stops serving.
	Out(pod *corev1.Pod, by By)
	// Stops is called before a container that serves is replaced by one of another image.
	Stops(p *Proc, announced bool)
	// Lost is called when memcached started in its pod without the items that it had.
	Lost(p *Proc, items int64)
	// Gone is called before the object of a pod that has terminated is deleted.
	Gone(p *Proc)
	// Missed is called when a kubelet misses a change of a pod's annotations.
	Missed(p *Proc)
}

// NewCluster returns a cluster around a server. Seed decides about names and UIDs.
func NewCluster(at time.Time, seed uint64) *Cluster {
	cl := &Cluster{
		Clock: testclock.NewFakeClock(at), Rand: rand.New(rand.NewPCG(seed, 0)), Procs: map[types.UID]*Proc{}, Certificate: "0123456789abcdef",
		Misses: func() bool { return false }, Lags: func(Kind) time.Duration { return 0 },
		Watcher: unwatched{}, Pods: map[string]int{}, began: map[types.UID]time.Time{},
		replicaSets: replicaSets{Around(nil, InMemory), map[Kind]time.Time{}, map[types.UID]int{}},
	}
	for i, disk := range []string{"ssd", "ssd", "hdd"} {
		cl.Nodes = append(cl.Nodes, &Node{Name: fmt.Sprintf("node%d", i+1), Labels: map[string]string{"disk": disk}, memory: 4 << 30})
	}
	cl.Server = NewServer(cl.Clock.Now, cl.newUID)
	return cl
}

func (cl *Cluster) newUID() types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", cl.Rand.Uint32(), cl.Rand.Uint64()&0xffffffffffff))
}

// Suffix returns what makes a generated name unique.
func (cl *Cluster) Suffix() string {
	cl.made++
	return fmt.Sprintf("%04x%d", cl.Rand.Uint32()&0xffff, cl.made)
}

// Action is one thing that can happen, and a sentence of it.
type Action struct {
	Story string
	Do    func()
}

// Models are the parts of Kubernetes, in the order in which they act. Each returns what it could do next.
func (cl *Cluster) Models() []func() []Action {
	return []func() []Action{cl.collectGarbage, cl.syncReplicaSets, cl.schedule, cl.runPods, cl.watchNodes, cl.runRestores, cl.runBackups}
}

// AgentStatus returns what the agent at an address answers.
func (cl *Cluster) AgentStatus(podIP string) (agentwire.Status, error) {
	for _, p := range cl.Procs {
		if p.ip == podIP && p.Runs && !cl.NodeOf(p).Down {
			return p.status(), nil
		}
	}
	return agentwire.Status{}, fmt.Errorf("no agent answers at %s", podIP)
}

// Heal returns every node, ends what is late, and has kubelets bring what they missed.
func (cl *Cluster) Heal() {
	clear(cl.replicaSets.late)
	for _, p := range cl.Procs {
		p.missed = nil
	}
	for _, n := range cl.Nodes {
		n.Down = false
	}
}

// must is for the models, whose writes are never rejected.
func must(o client.Object, err error) {
	if err != nil {
		panic(fmt.Sprintf("writing %s %s: %v", KindOf(o), o.GetName(), err))
	}
}

func (cl *Cluster) create(o client.Object) { must(o, cl.Server.Create(context.Background(), o)) }
func (cl *Cluster) update(o client.Object) { must(o, cl.Server.Update(context.Background(), o)) }
func (cl *Cluster) updateStatus(o client.Object) {
	must(o, cl.Server.Status().Update(context.Background(), o))
}

func (cl *Cluster) delete(o client.Object, options ...client.DeleteOption) {
	must(o, client.IgnoreNotFound(cl.Server.Delete(context.Background(), o, options...)))
}

type unwatched struct{}

func (unwatched) Deletes(client.Object, By) {}
func (unwatched) Out(*corev1.Pod, By)       {}
func (unwatched) Stops(*Proc, bool)         {}
func (unwatched) Lost(*Proc, int64)         {}
func (unwatched) Gone(*Proc)                {}
func (unwatched) Missed(*Proc)              {}
