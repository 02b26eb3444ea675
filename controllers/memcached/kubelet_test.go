package memcached

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// fakeCluster simulates the ReplicaSet controller, the kubelet, the agents and the restore
// controller for the pods of one Memcached. A tick is about a second.
type fakeCluster struct {
	*testEnv
	memcached   string
	pods        map[types.UID]*fakePod
	podsCreated int
	clock       *testclock.FakeClock
	killed      bool
	// idleRounds is after how many seconds without a write the Memcached has converged.
	idleRounds int
	// rejectedArgument is a word with which memcached doesn't start; empty is none.
	rejectedArgument string
	// finishRestore sets the status of a restore that finishes; nil leaves it running.
	finishRestore func(*v1alpha1.MemcachedRestore)
	// unpullable is an image that no node can pull.
	unpullable string
	// silent is whether no agent answers.
	silent bool
	// before are the lookups of shards with the arguments or the image at first, and after those of
	// shards with others.
	before, after lookups
	first         string
	// handsOver is whether pods with a key hand over their items.
	handsOver bool
	// follows is whether both pods serve for a step before a handover is over, as in mode Available.
	follows bool
	// certificate is what the agent of a pod reports of its certificate; nil reports nothing.
	certificate func(pod *corev1.Pod, p *fakePod) agentwire.Certificate
	// usersError is what the agents report of the Secret with the users.
	usersError string
	// loses is whether handovers fail at their end, and restarts lose the items.
	loses bool
}

// fakePod is what runs in one pod.
type fakePod struct {
	shard, image, arguments, restart string
	// announced is the announcement of a stop that the agent has read, and used the one that
	// preceded the last stop.
	announced, used string
	// containers and starts are how many there were, and start is the last start.
	containers, starts int
	start              agentwire.Start
	argumentsError     string
	ready              bool
	// receiving is whether memcached waits for the items of another pod, or receives them.
	receiving bool
	// following is whether it serves beside the pod that hands over its items.
	following bool
	// unannounced is how many stops of the container the agent took for the termination of
	// the pod.
	unannounced int
}

// lookups are those of the last minute, and those since memcached started.
type lookups struct{ recentGets, recentHits, gets, hits int64 }

// itemsPerShard is how many items each shard has when it is ready.
const itemsPerShard = 1000

func newCluster(t *testing.T, memcached, spec string) *fakeCluster {
	t.Helper()
	env := newEnv(t)
	cluster := &fakeCluster{testEnv: env, memcached: memcached, pods: map[types.UID]*fakePod{}, clock: testclock.NewFakeClock(time.Now()), idleRounds: 2}
	env.reconciler.Client, env.reconciler.Clock = cachedClient{env.reconciler.Client}, cluster.clock
	env.reconciler.Options.Resizing = resources.ResizeAll
	env.create(memcached, spec)
	return cluster
}

// newReadyCluster returns a cluster in which all shards are ready.
func newReadyCluster(t *testing.T, memcached, spec string) *fakeCluster {
	t.Helper()
	cluster := newCluster(t, memcached, spec)
	cluster.converge()
	return cluster
}

// tick advances everything by one step.
func (cluster *fakeCluster) tick() {
	cluster.Helper()
	cluster.runPreflights()
	var sets appsv1.ReplicaSetList
	cluster.must(cluster.admin.List(cluster.ctx, &sets, client.InNamespace(cluster.namespace), client.MatchingLabels(resources.Labels(cluster.memcached))))
	for i := range sets.Items {
		cluster.syncReplicaSet(&sets.Items[i])
	}
	for _, pod := range cluster.list() {
		cluster.syncPod(pod)
	}
	cluster.advanceRestores()
}

// advanceRestores simulates the restore controller, which makes one step a tick.
func (cluster *fakeCluster) advanceRestores() {
	cluster.Helper()
	for _, restore := range cluster.listRestores() {
		s := &restore.Status
		switch {
		case s.Phase == "":
			s.Phase, s.Message = v1alpha1.TransferRunning, "starting"
		case s.Phase != v1alpha1.TransferRunning:
			continue
		case s.Progress == nil:
			s.Progress = &v1alpha1.TransferProgress{Items: 860, TotalItems: 2000, Percent: 43}
		case cluster.finishRestore == nil:
			continue
		default:
			cluster.finishRestore(&restore)
		}
		cluster.must(cluster.admin.Status().Update(cluster.ctx, &restore))
	}
}

// completeRestore completes a restore.
func completeRestore(restore *v1alpha1.MemcachedRestore) {
	restore.Status.Phase, restore.Status.Restored = v1alpha1.TransferComplete, 2000
}

// failRestore fails a restore.
func failRestore(restore *v1alpha1.MemcachedRestore) {
	restore.Status.Phase, restore.Status.Message = v1alpha1.TransferFailed, "the snapshot does not exist"
}

func (cluster *fakeCluster) listRestores() []v1alpha1.MemcachedRestore {
	cluster.Helper()
	var restores v1alpha1.MemcachedRestoreList
	cluster.must(cluster.admin.List(cluster.ctx, &restores, client.InNamespace(cluster.namespace)))
	slices.SortFunc(restores.Items, func(a, b v1alpha1.MemcachedRestore) int { return strings.Compare(a.Name, b.Name) })
	return restores.Items
}

func (cluster *fakeCluster) list() []*corev1.Pod {
	cluster.Helper()
	var pods corev1.PodList
	cluster.must(cluster.admin.List(cluster.ctx, &pods, client.InNamespace(cluster.namespace), client.MatchingLabels(resources.Labels(cluster.memcached))))
	var all []*corev1.Pod
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// runPreflights simulates the preflight pods.
func (cluster *fakeCluster) runPreflights() {
	cluster.Helper()
	var pods corev1.PodList
	cluster.must(cluster.admin.List(cluster.ctx, &pods, client.InNamespace(cluster.namespace), client.MatchingLabels(resources.PreflightLabels(cluster.memcached))))
	for _, pod := range pods.Items {
		image := pod.Spec.Containers[0].Image
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		state := corev1.ContainerStatus{Name: resources.Container, Image: image, ImageID: "i"}
		pod.Status.Phase = corev1.PodSucceeded
		if image == cluster.unpullable {
			pod.Status.Phase = corev1.PodPending
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
		} else {
			version := image[strings.LastIndex(image, ":")+1:]
			state.State.Terminated = &corev1.ContainerStateTerminated{Message: fmt.Sprintf(`{"version":%q}`, version), ContainerID: "containerd://preflight"}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
		cluster.must(cluster.admin.Status().Update(cluster.ctx, &pod))
	}
}

// syncReplicaSet simulates the ReplicaSet controller.
func (cluster *fakeCluster) syncReplicaSet(set *appsv1.ReplicaSet) {
	cluster.Helper()
	var live []*corev1.Pod
	for _, pod := range cluster.list() {
		if metav1.IsControlledBy(pod, set) && pod.DeletionTimestamp == nil {
			live = append(live, pod)
		}
	}
	for len(live) < int(*set.Spec.Replicas) {
		cluster.podsCreated++
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
		pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, cluster.podsCreated), cluster.namespace
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pod.Spec.NodeName = "node1"
		cluster.must(cluster.admin.Create(cluster.ctx, pod))
		cluster.pods[pod.UID] = &fakePod{shard: set.Name}
		live = append(live, pod)
	}
	slices.SortStableFunc(live, func(a, b *corev1.Pod) int {
		rank := func(p *corev1.Pod) int {
			switch {
			case !cluster.pods[p.UID].ready:
				return 0
			case p.Annotations[corev1.PodDeletionCost] != "":
				return 1
			}
			return 2
		}
		return cmp.Or(rank(a)-rank(b), strings.Compare(b.Name, a.Name)) // the newer one first
	})
	for ; len(live) > int(*set.Spec.Replicas); live = live[1:] {
		cluster.must(cluster.admin.Delete(cluster.ctx, live[0]))
	}
}

// losePod deletes a shard's pod immediately, as when its node is lost.
func (cluster *fakeCluster) losePod(shard string) {
	cluster.Helper()
	for _, pod := range cluster.list() {
		if p := cluster.pods[pod.UID]; p.shard == shard {
			cluster.remove(pod)
		}
	}
}

// remove deletes a pod immediately, with its agent.
func (cluster *fakeCluster) remove(pod *corev1.Pod) {
	cluster.Helper()
	cluster.removePod(pod)
	delete(cluster.pods, pod.UID)
	delete(cluster.agents, podIP(pod))
}

// restartMemcached starts memcached in another container of a shard's pod, as after a crash.
func (cluster *fakeCluster) restartMemcached(shard string, start agentwire.StartResult) {
	cluster.Helper()
	for _, pod := range cluster.list() {
		if p := cluster.pods[pod.UID]; p.shard == shard {
			p.containers++
			p.starts++
			p.start = agentwire.Start{Result: start, ItemsBefore: itemsPerShard, At: cluster.clock.Now()}
			cluster.setPodStatus(pod, p)
		}
	}
}

// syncPod simulates the kubelet and the agent of a pod.
func (cluster *fakeCluster) syncPod(pod *corev1.Pod) {
	cluster.Helper()
	p := cluster.pods[pod.UID]
	if pod.DeletionTimestamp != nil {
		if cluster.handsOver && p.ready && cluster.successor(pod) != nil {
			cluster.handOver(pod, cluster.successor(pod))
			return
		}
		cluster.remove(pod)
		return
	}
	image, arguments, announcement := pod.Spec.Containers[0].Image, pod.Annotations[annotations.Arguments], pod.Annotations[annotations.Stop]
	switch {
	case p.containers == 0:
		p.containers, p.starts, p.image, p.arguments = 1, 1, image, arguments
		p.start = agentwire.Start{Result: agentwire.StartCold, At: cluster.clock.Now()}
		p.receiving = cluster.handsOver && resources.CanHandOver(pod) && cluster.serves(p.shard)
	case p.receiving && cluster.serves(p.shard):
	case p.receiving:
		p.receiving = false
		p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "no other pod responded", At: cluster.clock.Now()}
	case p.image != image:
		if p.announced == "" || p.announced == p.used {
			p.unannounced++
		}
		p.used = p.announced
		p.containers, p.starts, p.image, p.arguments, p.ready = p.containers+1, p.starts+1, image, arguments, false
		p.start = agentwire.Start{Result: agentwire.StartWarm, Items: itemsPerShard - 1, ItemsBefore: itemsPerShard, UnavailableSeconds: 0.4, At: cluster.clock.Now()}
		cluster.setPodStatus(pod, p) // not ready for a tick
		return
	case p.arguments != arguments && cluster.rejectedArgument != "" && strings.Contains(arguments, cluster.rejectedArgument):
		p.argumentsError = "memcached does not start with " + cluster.rejectedArgument
	case p.arguments != arguments:
		p.argumentsError, p.starts, p.arguments = "", p.starts+1, arguments
		p.start = agentwire.Start{Result: agentwire.StartWarm, Items: itemsPerShard, ItemsBefore: itemsPerShard, At: cluster.clock.Now()}
	case p.restart != pod.Annotations[v1alpha1.AnnotationRestart]:
		p.starts, p.restart = p.starts+1, pod.Annotations[v1alpha1.AnnotationRestart]
		p.start = agentwire.Start{Result: agentwire.StartWarm, Items: itemsPerShard, ItemsBefore: itemsPerShard, At: cluster.clock.Now()}
		if cluster.loses {
			p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "the memory file is damaged", ItemsBefore: itemsPerShard, At: cluster.clock.Now()}
		}
	default:
		p.argumentsError = ""
	}
	p.announced, p.ready = announcement, !p.receiving
	cluster.setPodStatus(pod, p)
}

// serves reports whether a pod of a shard is ready.
func (cluster *fakeCluster) serves(shard string) bool {
	for _, p := range cluster.pods {
		if p.shard == shard && p.ready {
			return true
		}
	}
	return false
}

// successor returns the pod that runs and isn't ready, follows, or is yet to be run, after another one of
// its shard, or nil.
func (cluster *fakeCluster) successor(of *corev1.Pod) *corev1.Pod {
	cluster.Helper()
	for _, pod := range cluster.list() {
		if p := cluster.pods[pod.UID]; p.shard == cluster.pods[of.UID].shard && pod.DeletionTimestamp == nil && (!p.ready || p.following) {
			return pod
		}
	}
	return nil
}

// handOver makes two steps of a handover: the second pod reports its progress, and then has the items.
func (cluster *fakeCluster) handOver(from, to *corev1.Pod) {
	cluster.Helper()
	p := cluster.pods[to.UID]
	agent := cluster.agents[podIP(to)]
	switch {
	case p.following:
		p.following, cluster.pods[from.UID].ready = false, false
		p.start = agentwire.Start{Result: agentwire.StartHandedOver, Items: itemsPerShard - 1, ItemsBefore: itemsPerShard,
			Mode: agentwire.ModeAvailable, StaleSeconds: 4.25, At: cluster.clock.Now()}
		cluster.setPodStatus(from, cluster.pods[from.UID])
	case !p.receiving:
	case agent.Handover == nil:
		agent.Handover = &agentwire.Progress{Pass: 1, Items: itemsPerShard / 4, Total: itemsPerShard}
		cluster.agents[podIP(to)] = agent
	case cluster.loses:
		p.receiving, cluster.pods[from.UID].ready = false, false
		p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "the other pod was lost", At: cluster.clock.Now()}
		cluster.setPodStatus(from, cluster.pods[from.UID])
	case cluster.follows:
		p.receiving, p.following = false, true
	default:
		p.receiving, cluster.pods[from.UID].ready = false, false
		p.start = agentwire.Start{Result: agentwire.StartHandedOver, Items: itemsPerShard - 1, ItemsBefore: itemsPerShard, GapSeconds: 0.25, At: cluster.clock.Now()}
		cluster.setPodStatus(from, cluster.pods[from.UID])
	}
}

// setPodStatus writes a pod's status if it has changed.
func (cluster *fakeCluster) setPodStatus(pod *corev1.Pod, p *fakePod) {
	cluster.Helper()
	cluster.setAgentStatus(pod, p)
	status, container := corev1.ConditionFalse, fmt.Sprintf("containerd://%d-%s", p.containers, pod.UID)
	if p.ready {
		status = corev1.ConditionTrue
	}
	if shard.ContainerID(pod) == container && shard.IsReady(pod) == p.ready {
		return
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: podIP(pod), PodIPs: []corev1.PodIP{{IP: podIP(pod)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: resources.Container, ContainerID: container,
			Ready: p.ready, Image: p.image, ImageID: "i", RestartCount: int32(p.containers - 1), //nolint:gosec // a few
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	cluster.must(cluster.admin.Status().Update(cluster.ctx, pod))
}

// setAgentStatus sets the answer of a pod's agent.
func (cluster *fakeCluster) setAgentStatus(pod *corev1.Pod, p *fakePod) {
	var words []string
	cluster.must(json.Unmarshal([]byte(p.arguments), &words))
	announced := p.announced
	if announced == p.used {
		announced = ""
	}
	if cluster.silent {
		delete(cluster.agents, podIP(pod))
		return
	}
	phase, handover := agentwire.PhaseServing, cluster.agents[podIP(pod)].Handover
	if p.receiving {
		phase = agentwire.PhaseReceiving
	} else if p.following {
		phase = agentwire.PhaseFollowing
	} else {
		handover = nil
	}
	of, runs := cluster.before, p.image+p.arguments+p.restart
	if cluster.first == "" {
		cluster.first = runs
	} else if cluster.first != runs {
		of = cluster.after
	}
	agent := agentwire.Status{
		Phase: phase, Handover: handover, PodUID: string(pod.UID), Version: p.image[strings.LastIndex(p.image, ":")+1:],
		Arguments: words, ArgumentsError: p.argumentsError, AnnouncedStop: announced, Start: p.start, Items: itemsPerShard,
	}
	agent.Restart = p.restart
	if cluster.certificate != nil {
		agent.Secrets = &agentwire.Secrets{Certificate: cluster.certificate(pod, p), Users: agentwire.Users{Error: cluster.usersError}}
	}
	agent.RecentGets, agent.RecentHits, agent.Gets, agent.Hits = of.recentGets, of.recentHits, of.gets, of.hits
	cluster.agents[podIP(pod)] = agent
}

// podIP returns an address of the pod that no other pod has.
func podIP(pod *corev1.Pod) string {
	sum := 0
	for _, c := range pod.UID {
		sum = (sum*31 + int(c)) % (250 * 250 * 250)
	}
	return fmt.Sprintf("10.%d.%d.%d", 1+sum/(250*250), 1+sum/250%250, 1+sum%250)
}

// converge reconciles and ticks until the operator writes nothing more. An operator that was
// killed is restarted.
func (cluster *fakeCluster) converge() *v1alpha1.Memcached {
	cluster.Helper()
	idle := 0
	for range 150 {
		before := cluster.writes.Load()
		_, err := cluster.reconciler.Reconcile(cluster.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: cluster.namespace, Name: cluster.memcached}})
		if cluster.writesLeft.Load() <= 0 {
			cluster.writesLeft.Store(math.MaxInt64)
			cluster.killed = true
		} else {
			cluster.must(err)
		}
		cluster.tick()
		cluster.clock.Step(time.Second)
		if cluster.writes.Load() != before {
			idle = 0
		} else if idle++; idle == cluster.idleRounds {
			return cluster.get(cluster.memcached)
		}
	}
	cluster.Fatalf("the operator still writes; the status is %+v", cluster.get(cluster.memcached).Status)
	return nil
}
