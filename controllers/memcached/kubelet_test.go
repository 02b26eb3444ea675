package memcached

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/internal/agentapi"
)

// kubelet does, beside a real API server, what the ReplicaSet controller, the
// kubelet and the agents do with the pods of one Memcached. A tick of it is about a
// second.
type kubelet struct {
	*world
	memcached string
	pods      map[types.UID]*fakePod
	made      int
	clock     *testclock.FakeClock
	// lives is how many writes the operator has left before it is killed.
	lives  atomic.Int64
	killed bool
	// patience is after how many quiet seconds everything is settled.
	patience int
	// refuses arguments with this word.
	refuses string
	// restores has the restore controller end what it runs; nil leaves them running.
	restores func(*v1alpha1.MemcachedRestore)
	// served are the shards in the order in which they came to serve, and what of
	// the restores was complete then.
	served []string
	// unpullable is an image that no node can pull.
	unpullable string
}

// fakePod is what runs in one pod.
type fakePod struct {
	shard, image, arguments string
	announced, used         string
	// containers and starts that there were, and how the last start went.
	containers, starts int
	start              agentapi.Start
	problem            string
	ready              bool
	// unannounced counts the stops of the container that the agent took for the end
	// of the pod.
	unannounced int
}

// perShard is how many items each shard has once it serves.
const perShard = 1000

func newKubelet(t *testing.T, memcached, spec string) *kubelet {
	t.Helper()
	w := newWorld(t)
	k := &kubelet{world: w, memcached: memcached, pods: map[types.UID]*fakePod{}, clock: testclock.NewFakeClock(time.Now()), patience: 2}
	k.lives.Store(math.MaxInt64)
	config := rest.CopyConfig(asSelf)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return killer{countWrites{next, w.writes}, &k.lives} })
	direct, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	w.reconciler.Client, w.reconciler.Live, w.reconciler.Clock = keptOf{direct}, direct, k.clock
	w.reconciler.Options.CanResize = true
	w.create(memcached, spec)
	return k
}

// newSettledKubelet returns one whose shards serve.
func newSettledKubelet(t *testing.T, memcached, spec string) *kubelet {
	t.Helper()
	k := newKubelet(t, memcached, spec)
	k.settle()
	return k
}

// tick brings everything one step further.
func (k *kubelet) tick() {
	k.Helper()
	k.prove()
	var sets appsv1.ReplicaSetList
	k.must(admin.List(k.ctx, &sets, client.InNamespace(k.namespace), client.MatchingLabels(manifests.Labels(k.memcached))))
	for i := range sets.Items {
		k.keep(&sets.Items[i])
	}
	for _, pod := range k.list() {
		k.run(pod)
	}
	k.restore()
}

// restore does what the restore controller does, a step a tick.
func (k *kubelet) restore() {
	k.Helper()
	for _, restore := range k.listRestores() {
		s := &restore.Status
		switch {
		case s.Phase == "":
			s.Phase, s.Message = v1alpha1.RunRunning, "it begins"
		case s.Phase != v1alpha1.RunRunning:
			continue
		case s.Progress == nil:
			s.Progress = &v1alpha1.RunProgress{Items: 860, TotalItems: 2000, Percent: 43}
		case k.restores == nil:
			continue
		default:
			k.restores(&restore)
		}
		k.must(admin.Status().Update(k.ctx, &restore))
	}
}

// completes ends a restore as one does that worked.
func completes(restore *v1alpha1.MemcachedRestore) {
	restore.Status.Phase, restore.Status.Restored = v1alpha1.RunComplete, 2000
}

// fails ends a restore as one does that did not.
func fails(restore *v1alpha1.MemcachedRestore) {
	restore.Status.Phase, restore.Status.Message = v1alpha1.RunFailed, "the snapshot is not there"
}

func (k *kubelet) listRestores() []v1alpha1.MemcachedRestore {
	k.Helper()
	var restores v1alpha1.MemcachedRestoreList
	k.must(admin.List(k.ctx, &restores, client.InNamespace(k.namespace)))
	slices.SortFunc(restores.Items, func(a, b v1alpha1.MemcachedRestore) int { return strings.Compare(a.Name, b.Name) })
	return restores.Items
}

func (k *kubelet) list() []*corev1.Pod {
	k.Helper()
	var pods corev1.PodList
	k.must(admin.List(k.ctx, &pods, client.InNamespace(k.namespace), client.MatchingLabels(manifests.Labels(k.memcached))))
	var all []*corev1.Pod
	for i := range pods.Items {
		all = append(all, &pods.Items[i])
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// prove runs the proofs.
func (k *kubelet) prove() {
	k.Helper()
	var proofs corev1.PodList
	k.must(admin.List(k.ctx, &proofs, client.InNamespace(k.namespace), client.MatchingLabels(manifests.ProofLabels(k.memcached))))
	for _, pod := range proofs.Items {
		image := pod.Spec.Containers[0].Image
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		state := corev1.ContainerStatus{Name: manifests.Container, Image: image, ImageID: "i"}
		pod.Status.Phase = corev1.PodSucceeded
		if image == k.unpullable {
			pod.Status.Phase = corev1.PodPending
			state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
		} else {
			version := image[strings.LastIndex(image, ":")+1:]
			state.State.Terminated = &corev1.ContainerStateTerminated{Message: fmt.Sprintf(`{"version":%q}`, version), ContainerID: "containerd://proof"}
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
		k.must(admin.Status().Update(k.ctx, &pod))
	}
}

// keep does what the ReplicaSet controller does.
func (k *kubelet) keep(set *appsv1.ReplicaSet) {
	k.Helper()
	var live []*corev1.Pod
	for _, pod := range k.list() {
		if metav1.IsControlledBy(pod, set) && pod.DeletionTimestamp == nil {
			live = append(live, pod)
		}
	}
	for len(live) < int(*set.Spec.Replicas) {
		k.made++
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
		pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, k.made), k.namespace
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		pod.Spec.NodeName = "node1"
		k.must(admin.Create(k.ctx, pod))
		k.pods[pod.UID] = &fakePod{shard: set.Name}
		live = append(live, pod)
	}
	slices.SortStableFunc(live, func(a, b *corev1.Pod) int {
		rank := func(p *corev1.Pod) int {
			switch {
			case !k.pods[p.UID].ready:
				return 0
			case p.Annotations[corev1.PodDeletionCost] != "":
				return 1
			}
			return 2
		}
		return rank(a) - rank(b)
	})
	for ; len(live) > int(*set.Spec.Replicas); live = live[1:] {
		k.must(admin.Delete(k.ctx, live[0]))
	}
}

// lose takes a shard's pod away, as the loss of its node would.
func (k *kubelet) lose(shard string) {
	k.Helper()
	for _, pod := range k.list() {
		if p := k.pods[pod.UID]; p.shard == shard {
			k.endPod(pod)
			delete(k.pods, pod.UID)
		}
	}
}

// again has a shard's memcached start again, by a crash or not, in its pod and in
// another container of it.
func (k *kubelet) again(shard string, start agentapi.StartResult) {
	k.Helper()
	for _, pod := range k.list() {
		if p := k.pods[pod.UID]; p.shard == shard {
			p.containers++
			p.starts++
			p.start = agentapi.Start{Result: start, ItemsBefore: perShard, At: k.clock.Now()}
			k.status(pod, p)
		}
	}
}

// run does what the kubelet and the agent do with a pod.
func (k *kubelet) run(pod *corev1.Pod) {
	k.Helper()
	p := k.pods[pod.UID]
	if pod.DeletionTimestamp != nil {
		k.endPod(pod)
		delete(k.pods, pod.UID)
		return
	}
	image, arguments, announcement := pod.Spec.Containers[0].Image, pod.Annotations[v1alpha1.AnnotationArguments], pod.Annotations[v1alpha1.AnnotationStop]
	switch {
	case p.containers == 0:
		p.containers, p.starts, p.image, p.arguments = 1, 1, image, arguments
		p.start = agentapi.Start{Result: agentapi.StartCold, At: k.clock.Now()}
	case p.image != image:
		if p.announced == "" || p.announced == p.used {
			p.unannounced++
		}
		p.used = p.announced
		p.containers, p.starts, p.image, p.arguments, p.ready = p.containers+1, p.starts+1, image, arguments, false
		p.start = agentapi.Start{Result: agentapi.StartWarm, Items: perShard, ItemsBefore: perShard, At: k.clock.Now()}
		k.status(pod, p) // not ready for a tick
		return
	case p.arguments != arguments && k.refuses != "" && strings.Contains(arguments, k.refuses):
		p.problem = "memcached does not start with " + k.refuses
	case p.arguments != arguments:
		p.problem, p.starts, p.arguments = "", p.starts+1, arguments
		p.start = agentapi.Start{Result: agentapi.StartWarm, Items: perShard, ItemsBefore: perShard, At: k.clock.Now()}
	default:
		p.problem = ""
	}
	until, err := time.Parse(time.RFC3339, pod.Annotations[v1alpha1.AnnotationHoldUntil])
	wasReady := p.ready
	p.announced, p.ready = announcement, p.ready || err != nil || !k.clock.Now().Before(until)
	if p.ready && !wasReady {
		line := p.shard
		for _, restore := range k.listRestores() {
			line += fmt.Sprintf(", %s %s", restore.Name, restore.Status.Phase)
		}
		k.served = append(k.served, line)
	}
	k.status(pod, p)
}

// status writes how a pod is, if that changed.
func (k *kubelet) status(pod *corev1.Pod, p *fakePod) {
	k.Helper()
	k.tell(pod, p)
	status, container := corev1.ConditionFalse, fmt.Sprintf("containerd://%s-%d", pod.UID, p.containers)
	if p.ready {
		status = corev1.ConditionTrue
	}
	if containerID(pod) == container && isReady(pod) == p.ready {
		return
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: podIP(pod), PodIPs: []corev1.PodIP{{IP: podIP(pod)}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: manifests.Container, ContainerID: container,
			Ready: p.ready, Image: p.image, ImageID: "i", RestartCount: int32(p.containers - 1), //nolint:gosec // a few
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
	k.must(admin.Status().Update(k.ctx, pod))
}

// tell has the agent answer.
func (k *kubelet) tell(pod *corev1.Pod, p *fakePod) {
	var words []string
	k.must(json.Unmarshal([]byte(p.arguments), &words))
	announced := p.announced
	if announced == p.used {
		announced = ""
	}
	k.agents[podIP(pod)] = agentapi.Status{
		Phase: agentapi.PhaseServing, PodUID: string(pod.UID), Version: p.image[strings.LastIndex(p.image, ":")+1:],
		Arguments: words, ArgumentsError: p.problem, AnnouncedStop: announced, Start: p.start, Items: perShard,
	}
}

// podIP returns an address that is the pod's own.
func podIP(pod *corev1.Pod) string {
	sum := 0
	for _, c := range pod.UID {
		sum = (sum*31 + int(c)) % (250 * 250 * 250)
	}
	return fmt.Sprintf("10.%d.%d.%d", 1+sum/(250*250), 1+sum/250%250, 1+sum%250)
}

// settle goes on as the controller's queue would until nothing is written any more.
// An operator that is killed is started anew.
func (k *kubelet) settle() *v1alpha1.Memcached {
	k.Helper()
	quiet := 0
	for range 150 {
		before := k.writes.Load()
		_, err := k.reconciler.Reconcile(k.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: k.namespace, Name: k.memcached}})
		if k.lives.Load() <= 0 {
			k.lives.Store(math.MaxInt64)
			k.killed = true
		} else {
			k.must(err)
		}
		k.tick()
		k.clock.Step(time.Second)
		if k.writes.Load() != before {
			quiet = 0
		} else if quiet++; quiet == k.patience {
			return k.get(k.memcached)
		}
	}
	k.Fatalf("the operator still writes; the status is %+v", k.get(k.memcached).Status)
	return nil
}

// errKilled is what the requests of an operator end with that was killed.
var errKilled = errors.New("the operator was killed")

// killed lets no request through after a number of writes.
type killer struct {
	next  http.RoundTripper
	lives *atomic.Int64
}

func (r killer) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.lives.Load() <= 0 {
		return nil, errKilled
	}
	response, err := r.next.RoundTrip(request)
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		r.lives.Add(-1)
	}
	return response, err
}
