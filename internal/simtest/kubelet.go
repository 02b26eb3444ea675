package simtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// ItemsPerShard is how many items a shard has when clients have filled it.
const ItemsPerShard = 1000

// drains is how long a terminating pod keeps serving while no other pod has taken over.
const drains = 60 * time.Second

// awaitsDeletion is how long a pod beside which the next one serves waits for its deletion.
const awaitsDeletion = 30 * time.Second

// Proc is what runs of a pod on its node: a container, its agent and memcached.
type Proc struct {
	cluster *Cluster
	uid     types.UID
	ip      string
	// Pod and Node are names, and Shard is that of the ReplicaSet.
	Pod, Node, Shard string
	// Runs: the container does. The kubelet created it Containers times, of Image.
	Runs       bool
	Containers int
	Image      string
	// waiting is the kubelet's reason for not running it.
	waiting, message string
	// brought are the annotations that the kubelet has brought into the pod.
	brought map[string]string
	// missed are annotations that it doesn't bring until they change again; nil for none.
	missed map[string]string
	// Arguments in effect, and why newer ones are not.
	Arguments, problem string
	restart            string
	// Certificate that memcached serves.
	Certificate string
	// used is the token that announced the stop before this container, and stopRead when the present one was brought; zero before
	// this container.
	used     string
	stopRead time.Time
	start    agentwire.Start
	// Starts of memcached, and the items that it has.
	Starts int
	Items  int64
	// saved is how many items the data volume holds, by what memcached with what
	// arguments; without an image there are none.
	saved savedItems
	// Serves: memcached answers and its pod should be ready.
	Serves bool
	// receives: memcached runs for no client yet, since another pod of the shard has its items.
	receives bool
	// from is the pod from which it expects them: the one that it has found, until that is lost. Nil for none.
	from *Proc
	// follows is the pod beside which it serves at the end of a handover in mode Available; nil for none.
	follows      *Proc
	followsSince time.Time
	// followedBy is the pod that serves beside it then; nil for none.
	followedBy *Proc
	// moved is what the agent has completed of moving items from other shards.
	moved agentwire.ScalingStatus
	// resources in effect. Resized is whether they were changed.
	resources corev1.ResourceRequirements
	Resized   bool
	// reported is the status that was written last.
	reported *corev1.PodStatus
	unfit    string
}

type savedItems struct {
	items            int64
	image, arguments string
}

// runPods has the kubelets run the pods of their nodes.
func (cl *Cluster) runPods() []Action {
	var could []Action
	for _, pod := range All[*corev1.Pod](cl.Server) {
		n := cl.nodeNamed(pod.Spec.NodeName)
		if n == nil || n.Down {
			continue
		}
		if IsPreflight(pod) {
			could = append(could, cl.preflight(pod)...)
			continue
		}
		could = append(could, cl.run(pod)...)
	}
	return could
}

// StopContainers has the kubelets stop the containers that have another image now. Kubelets of nodes that are up do so within seconds, which
// those who announce a stop rely on.
func (cl *Cluster) StopContainers() {
	for _, pod := range All[*corev1.Pod](cl.Server) {
		p, n := cl.Procs[pod.UID], cl.nodeNamed(pod.Spec.NodeName)
		if p != nil && p.Runs && n != nil && !n.Down && pod.DeletionTimestamp == nil && p.Image != Container(pod).Image {
			p.stop()
			cl.writeStatus(p)
		}
	}
}

// preflight returns what can happen to a preflight pod.
func (cl *Cluster) preflight(pod *corev1.Pod) []Action {
	if pod.DeletionTimestamp != nil {
		return []Action{{"preflight pod " + pod.Name + " is deleted", func() { cl.delete(pod, client.GracePeriodSeconds(0)) }}}
	}
	image := Container(pod).Image
	state := corev1.ContainerStatus{Name: resources.Container, Image: image, ImageID: "i"}
	phase := corev1.PodSucceeded
	version := VersionIn(image)
	switch {
	case isFinished(pod) || len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil:
		return nil
	case strings.Contains(image, "busybox"):
		phase = corev1.PodFailed
		state.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "there is no memcached in the image", ContainerID: "containerd://preflight"}
	case version == "":
		phase = corev1.PodPending
		state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
	case rejectsArguments(Container(pod).Args):
		phase = corev1.PodFailed
		state.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "memcached rejects its arguments", ContainerID: "containerd://preflight"}
	default:
		state.State.Terminated = &corev1.ContainerStateTerminated{Message: fmt.Sprintf(`{"version":%q}`, version), ContainerID: "containerd://preflight"}
	}
	return []Action{{fmt.Sprintf("preflight pod %s: %s", pod.Name, phase), func() {
		pod := pod.DeepCopy()
		pod.Status.Phase, pod.Status.ContainerStatuses = phase, []corev1.ContainerStatus{state}
		cl.updateStatus(pod)
	}}}
}

// rejectsArguments reports whether memcached doesn't start with arguments.
func rejectsArguments(words []string) bool {
	text := strings.Join(words, " ")
	return strings.Contains(text, "-R 0") || strings.Contains(text, `"-R","0"`) || strings.Contains(text, "--no-such")
}

// run returns what could happen to a shard's pod.
func (cl *Cluster) run(pod *corev1.Pod) []Action {
	if isFinished(pod) {
		if pod.DeletionTimestamp == nil {
			return nil
		}
		return []Action{{"pod " + pod.Name + ", which has failed, is deleted", func() { cl.delete(pod, client.GracePeriodSeconds(0)) }}}
	}
	p := cl.Procs[pod.UID]
	act := func(story string, do func()) []Action {
		return []Action{{fmt.Sprintf("pod %s %s", pod.Name, story), func() {
			do()
			if cl.Procs[p.uid] != nil {
				cl.writeStatus(p)
			}
		}}}
	}
	if p == nil {
		p = &Proc{cluster: cl, uid: pod.UID, Pod: pod.Name, Node: pod.Spec.NodeName, Shard: ShardOf(pod), ip: cl.newIP()}
		return act("begins", func() { cl.Procs[pod.UID] = p })
	}
	if p.Runs && p.followedBy != nil && (cl.Procs[p.followedBy.uid] == nil || p.followedBy.follows != p) {
		return act("has lost pod "+p.followedBy.Pod+", which may have served, and gives up its items", func() {
			cl.Watcher.Out(pod, ByFault)
			p.Items, p.Serves, p.receives, p.followedBy = 0, false, true, nil
		})
	}
	if pod.DeletionTimestamp != nil {
		if p.Runs && p.Serves && (!cl.ServedByOther(p) || cl.isFollowed(p)) && cl.Clock.Now().Sub(pod.DeletionTimestamp.Time) < drains {
			return nil // it waits for who takes over
		}
		return act("ends", func() {
			cl.Watcher.Gone(p)
			delete(cl.Procs, pod.UID)
			cl.delete(pod, client.GracePeriodSeconds(0))
		})
	}
	var could []Action
	c := Container(pod)
	switch {
	case p.Runs && p.Image != c.Image:
		could = append(could, act("stops its container for another image", p.stop)...)
	case !p.Runs && (p.waiting == "" || p.Image != c.Image):
		could = append(could, act("starts its container", func() { p.begin(pod) })...)
	case !p.Runs:
	case p.brought[annotations.Arguments] != p.Arguments && p.announced() == "" && p.problem == "":
		could = append(could, act("restarts memcached with other arguments", func() { p.rearm() })...)
	case p.brought[v1beta1.AnnotationRestart] != p.restart && p.announced() == "" && p.problem == "" && p.Serves:
		could = append(could, act("restarts memcached as its annotation says", func() { p.rearm() })...)
	case p.brought[annotations.Arguments] == p.Arguments && p.problem != "":
		could = append(could, act("has its arguments again", func() { p.problem = "" })...)
	case p.receives:
		if cl.isLost(p.from) {
			p.from = cl.source(p)
		}
		switch from := p.from; {
		case from != nil && (from.receives || from.followedBy != nil && from.followedBy != p): // a third pod has got them
		case from == nil:
			could = append(could, act("has no one to receive its items from", func() { p.receives = false })...)
		case cl.handsOver(from, p) && pod.Annotations[annotations.Handover] == string(v1beta1.HandoverAvailable):
			could = append(could, act("has the items of pod "+from.Pod+", and both serve", func() {
				p.Items, p.receives, p.Serves, p.follows = from.Items, false, !p.awaitsKeys(), from
				from.followedBy, p.followsSince = p, cl.Clock.Now()
			})...)
		case cl.handsOver(from, p):
			could = append(could, act("receives the items of pod "+from.Pod, func() { cl.handOver(from, p) })...)
		}
	case p.follows != nil && cl.source(p) == p.follows && cl.PodOf(p.follows).DeletionTimestamp == nil && cl.Clock.Now().Sub(p.followsSince) < awaitsDeletion:
	case p.follows != nil && cl.source(p) == p.follows:
		could = append(could, act("serves without pod "+p.follows.Pod, func() { cl.handOver(p.follows, p) })...)
	case p.follows != nil:
		could = append(could, act("has lost pod "+p.follows.Pod+" while both served", func() {
			p.Items, p.follows = 0, nil
			p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "the source was lost while both pods served", At: cl.Clock.Now()}
		})...)
	case !p.Serves && p.awaitsKeys(): // until it has them, and clients may use it
	case !p.Serves:
		could = append(could, act("serves", func() { p.Serves = true })...)
	case p.Serves && p.Items < ItemsPerShard:
		could = append(could, act("is filled by its clients", func() { p.Items = ItemsPerShard })...)
	}
	switch { // last, as a kubelet can stop the container for a change before it brings the annotations of that change
	case maps.Equal(p.brought, pod.Annotations):
	case p.missed == nil && p.brought != nil && cl.Misses():
		could = append(could, act("misses a change", func() {
			cl.Watcher.Missed(p)
			p.missed = maps.Clone(pod.Annotations)
		})...)
	case !maps.Equal(p.missed, pod.Annotations):
		could = append(could, act("is brought its annotations", func() { p.bring(pod) })...)
	}
	if r := p.scaling(); p.Runs && !p.receives && r.ID != "" && (p.Moved().Problem == "" || r.Step == agentwire.ScalingClose) && (p.moved.ID != r.ID || p.moved.Step != r.Step) {
		could = append(could, act(fmt.Sprintf("completes step %s of scaling %s", r.Step, r.ID), func() { cl.move(p, r) })...)
	}
	if p.Runs && p.unfit != ResourcesText(c.Resources) && !p.cannotShrink(c.Resources) && !equality.Semantic.DeepEqual(p.resources, c.Resources) {
		could = append(could, act("is resized", func() { cl.resize(p, c.Resources) })...)
	}
	if p.Runs && !cl.isReported(p, pod) {
		could = append(could, act("reports its status", func() {})...)
	}
	return could
}

// Evict ends a pod, as a kubelet whose node lacks memory or disk does. Kubernetes keeps the pod, as a failed one.
func (cl *Cluster) Evict(pod *corev1.Pod) {
	cl.Watcher.Deletes(pod, ByFault)
	cl.Watcher.Gone(cl.Procs[pod.UID])
	delete(cl.Procs, pod.UID)
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	pod.Status.Conditions, pod.Status.ContainerStatuses = nil, nil
	cl.updateStatus(pod)
}

// scaling is which items of other shards the pod was requested to get.
func (p *Proc) scaling() agentwire.Scaling {
	r, err := agentwire.ParseScaling(p.brought[annotations.Scaling])
	if r == nil || err != nil {
		return agentwire.Scaling{}
	}
	return *r
}

// awaitsKeys reports whether no client may use the shard yet.
func (p *Proc) awaitsKeys() bool {
	r := p.scaling()
	return r.Step == agentwire.ScalingCopy && r.Ordinal >= len(r.From) && p.Moved().Problem == ""
}

// move completes a step of moving items, or finds that clients use another ring. Then only the last step can be completed.
func (cl *Cluster) move(p *Proc, r agentwire.Scaling) {
	if problem := p.Moved().Problem; problem != "" || cl.Unproven {
		p.moved = agentwire.ScalingStatus{ID: r.ID, Problem: cmp.Or(problem, "300 of 1,000 keys are where Ketama puts them"), Forgets: true}
		if r.Step == agentwire.ScalingClose {
			p.moved.Step = r.Step
		}
		return
	}
	p.moved = agentwire.ScalingStatus{ID: r.ID, Step: r.Step, Moved: ItemsPerShard / 4, Total: ItemsPerShard / 4, StaleSeconds: 0.5}
}

// Moved is what the agent reports of moving items from other shards.
func (p *Proc) Moved() agentwire.ScalingStatus {
	r, moved := p.scaling(), p.moved
	if moved.ID != r.ID {
		moved = agentwire.ScalingStatus{ID: r.ID}
	}
	moved.Requested = r.Step
	return moved
}

func (cl *Cluster) newIP() string {
	cl.made++
	return fmt.Sprintf("10.1.%d.%d", cl.made/250, 1+cl.made%250)
}

// ServedByOther reports whether another pod of the shard is ready.
func (cl *Cluster) ServedByOther(p *Proc) bool {
	for _, pod := range All[*corev1.Pod](cl.Server) {
		if pod.UID != p.uid && ShardOf(pod) == p.Shard && IsReady(pod) {
			return true
		}
	}
	return false
}

// source returns what runs of another pod of the shard that serves and can hand over its items, nil when
// none does.
func (cl *Cluster) source(p *Proc) *Proc {
	for _, pod := range All[*corev1.Pod](cl.Server) {
		from := cl.Procs[pod.UID]
		if from != nil && from != p && from.Shard == p.Shard && from.Runs && from.Serves && (from.followedBy == nil || from.followedBy == p) && resources.CanReceive(pod) && !cl.NodeOf(from).Down {
			return from
		}
	}
	return nil
}

// isLost reports whether a pod has no items to hand over, and never will.
func (cl *Cluster) isLost(from *Proc) bool {
	return from == nil || cl.Procs[from.uid] != from || cl.PodOf(from) == nil || !from.Runs || !from.Serves && !from.receives || cl.NodeOf(from).Down
}

// handsOver reports whether a pod hands over its items to another one of its shard: it is being deleted, or the other one
// was requested to replace it.
func (cl *Cluster) handsOver(from, to *Proc) bool {
	return cl.PodOf(from).DeletionTimestamp != nil || to.brought[annotations.Receive] == string(from.uid)
}

// isFollowed reports whether another pod of the shard serves beside a pod that hands over its items.
func (cl *Cluster) isFollowed(from *Proc) bool {
	for _, p := range cl.Procs {
		if p.follows == from && p.Runs {
			return true
		}
	}
	return false
}

// handOver moves the items to another pod, which then serves.
func (cl *Cluster) handOver(from, to *Proc) {
	to.start = agentwire.Start{Result: agentwire.StartHandedOver, Items: from.Items, ItemsBefore: from.Items, At: cl.Clock.Now()}
	to.Items, to.receives, to.Serves, to.follows = from.Items, false, !to.awaitsKeys(), nil
	from.Items, from.Serves, from.receives, from.from, from.followedBy = 0, false, true, nil, nil // until it is deleted
	cl.writeStatus(to)
	cl.writeStatus(from)
}

// announced is the token by which a stop of the container only is announced.
func (p *Proc) announced() string {
	if p.cluster.Clock.Now().Sub(p.stopRead) <= agentwire.AnnouncementTimeout {
		return p.brought[annotations.Stop]
	}
	return ""
}

// AwaitsStop reports whether its agent delays changes since it expects the end of the container: for a minute, if that was announced to the
// container before.
func (p *Proc) AwaitsStop() bool { return p.Runs && p.announced() != "" }

// bring brings the pod's annotations into it.
func (p *Proc) bring(pod *corev1.Pod) {
	if pod.Annotations[annotations.Stop] != p.brought[annotations.Stop] {
		p.stopRead = p.cluster.Clock.Now()
	}
	p.brought, p.missed = maps.Clone(pod.Annotations), nil
}

// stop stops the container, whose image is another one now.
func (p *Proc) stop() {
	if p.Serves {
		// While its node is cut off, the agent forgets the announcement. Then it serves for a drain's time, and saves its items.
		wasCutOff := !p.stopRead.IsZero() && p.cluster.NodeOf(p).Since.After(p.stopRead)
		p.cluster.Watcher.Stops(p, p.announced() != "" || wasCutOff)
	}
	p.saved = savedItems{p.Items, p.Image, p.Arguments}
	p.used = p.announced()
	p.Runs, p.Serves, p.follows = false, false, nil // the next container starts empty
}

// begin starts the container.
func (p *Proc) begin(pod *corev1.Pod) {
	cl := p.cluster
	p.Image, p.waiting, p.message = Container(pod).Image, "", ""
	version := VersionIn(p.Image)
	switch {
	case strings.Contains(p.Image, "busybox"):
		p.Containers++
		p.waiting, p.message = "CrashLoopBackOff", "there is no memcached in the image"
		return
	case version == "":
		p.waiting, p.message = "ErrImagePull", "not found"
		return
	}
	if p.brought == nil || !agentwire.AnnouncedArguments(p.used, p.brought[annotations.Arguments]) {
		p.brought = maps.Clone(pod.Annotations)
	}
	arguments := p.brought[annotations.Arguments]
	p.Containers++
	if rejectsArguments([]string{arguments}) {
		p.waiting, p.message = "CrashLoopBackOff", "memcached rejects its arguments"
		return
	}
	p.Runs, p.Serves, p.Arguments, p.problem, p.stopRead = true, false, arguments, "", time.Time{}
	p.resources = Container(pod).Resources
	p.load()
	if p.from = nil; p.Containers == 1 && resources.CanReceive(pod) {
		p.from = cl.source(p)
	}
	p.receives = p.from != nil
}

// rearm restarts memcached in its container with the arguments that were brought.
func (p *Proc) rearm() {
	arguments := p.brought[annotations.Arguments]
	if rejectsArguments([]string{arguments}) {
		p.problem = "memcached does not start with them"
		return
	}
	if p.Serves {
		p.cluster.Watcher.Out(p.cluster.PodOf(p), ByOperator)
	}
	p.saved = savedItems{p.Items, p.Image, p.Arguments}
	p.Arguments, p.Serves = arguments, false
	p.load()
}

// load has memcached start with what the data volume holds.
func (p *Proc) load() {
	p.Starts++
	p.moved = agentwire.ScalingStatus{}
	p.restart, p.Certificate = p.brought[v1beta1.AnnotationRestart], p.cluster.Certificate
	before := p.saved.items
	p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "nothing was saved", ItemsBefore: before, At: p.cluster.Clock.Now()}
	if p.saved.image != "" && shape(p.saved.arguments) == shape(p.Arguments) {
		p.start = agentwire.Start{Result: agentwire.StartWarm, Items: before, ItemsBefore: before, At: p.cluster.Clock.Now()}
	}
	if p.Items = p.start.Items; before > p.Items {
		p.cluster.Watcher.Lost(p, before)
	}
	p.saved = savedItems{}
}

// shape returns those of memcached's arguments that must be the same for it to
// start with what another one saved. Of one that is given twice the last counts.
func shape(text string) string {
	var words []string
	_ = json.Unmarshal([]byte(text), &words)
	has := map[string]string{}
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "-C":
			has[word] = ""
		case !takesValue(word) || i+1 == len(words):
		case word == "-o":
			i++
			for option := range strings.SplitSeq(words[i], ",") {
				if name, value, _ := strings.Cut(option, "="); strings.HasPrefix(name, "slab_") {
					has[name] = value
				}
			}
		default:
			i++
			if slices.Contains([]string{"-m", "-I", "-f", "-n"}, word) {
				has[word] = words[i]
			}
		}
	}
	return fmt.Sprint(has)
}

// takesValue reports whether the word after one of memcached's arguments is its value.
func takesValue(word string) bool {
	return slices.Contains([]string{"-m", "-I", "-f", "-n", "-o", "-p", "-U", "-c", "-t", "-R", "-b", "-B", "-D"}, word)
}

// resize gives a container resources, if its node has room.
func (cl *Cluster) resize(p *Proc, want corev1.ResourceRequirements) {
	if p.unfit = ""; want.Requests.Memory().Value() > cl.NodeOf(p).memory {
		p.unfit = ResourcesText(want)
		return
	}
	p.resources, p.Resized = want, true
}

// cannotShrink reports whether the kubelet never takes memory away for some resources. It first
// looks for the usage of all containers of that name, and containerd doesn't know that of one that
// has exited (Kubernetes 1.37).
func (p *Proc) cannotShrink(to corev1.ResourceRequirements) bool {
	limit, ok := to.Limits[corev1.ResourceMemory]
	has, limited := p.resources.Limits[corev1.ResourceMemory]
	return p.Containers > 1 && ok && (!limited || limit.Cmp(has) < 0)
}

// ResourcesOf returns the resources of a pod's container, or those that it has as soon as the
// kubelet can take memory away.
func (p *Proc) ResourcesOf(pod *corev1.Pod) corev1.ResourceRequirements {
	if want := Container(pod).Resources; p.cannotShrink(want) {
		return want
	}
	return p.resources
}

// ResourcesText returns resources as JSON, to be compared.
func ResourcesText(r corev1.ResourceRequirements) string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// PodOf returns the pod of a process, nil when it is deleted.
func (cl *Cluster) PodOf(p *Proc) *corev1.Pod { return Get[*corev1.Pod](cl.Server, p.Pod) }

// status is the agent's answer.
func (p *Proc) status() agentwire.Status {
	var words []string
	_ = json.Unmarshal([]byte(p.Arguments), &words)
	phase, moved := agentwire.PhaseServing, p.Moved()
	if p.receives || p.awaitsKeys() {
		phase = agentwire.PhaseReceiving
	} else if p.follows != nil {
		phase = agentwire.PhaseFollowing
	} else if !p.Serves {
		phase = agentwire.PhaseRestarting
	}
	secrets := &agentwire.Secrets{Certificate: agentwire.Certificate{Offered: p.cluster.Certificate}}
	if slices.Contains(words, "-Z") {
		c := &secrets.Certificate
		c.SHA256, c.NotBefore, c.NotAfter = p.Certificate, p.start.At, p.start.At.AddDate(1, 0, 0)
		if c.SHA256 != c.Offered {
			c.RestartRequired = "its key is of another type"
		}
	}
	return agentwire.Status{
		Secrets: secrets, Scaling: &moved, Phase: phase, PodUID: string(p.uid), Version: VersionIn(p.Image), Arguments: words, ArgumentsError: p.problem,
		AnnouncedStop: p.announced(), Restart: p.restart, Start: p.start, Items: p.Items,
		RecentGets: 5000, RecentHits: 4000, Gets: 5000, Hits: 4000,
	}
}

// podStatus returns the status that a kubelet writes.
func (cl *Cluster) podStatus(p *Proc, pod *corev1.Pod) corev1.PodStatus {
	ready := corev1.ConditionFalse
	if p.Runs && p.Serves {
		ready = corev1.ConditionTrue
	}
	since := metav1.NewTime(cl.Clock.Now().Truncate(time.Second)) // the API stores seconds
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == ready {
			since = c.LastTransitionTime
		}
	}
	c := corev1.ContainerStatus{Name: resources.Container, Image: p.Image, ImageID: "i", Ready: p.Runs && p.Serves, RestartCount: int32(max(p.Containers-1, 0))} //nolint:gosec // a few
	status := corev1.PodStatus{
		Phase:      corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: since}, {Type: corev1.ContainersReady, Status: ready}},
	}
	if p.Containers > 0 {
		status.Phase, status.PodIP, status.PodIPs = corev1.PodRunning, p.ip, []corev1.PodIP{{IP: p.ip}}
		c.ContainerID = fmt.Sprintf("containerd://%d-%s", p.Containers, p.uid)
	}
	switch {
	case p.Runs:
		c.State.Running = &corev1.ContainerStateRunning{}
		c.Resources = p.resources.DeepCopy()
	case p.waiting != "":
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: p.waiting, Message: p.message}
		if p.waiting == "CrashLoopBackOff" {
			c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: p.message, ContainerID: c.ContainerID}
		}
	default:
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	if p.unfit != "" && p.unfit == ResourcesText(Container(pod).Resources) {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "the node has not that much"})
	}
	if p.cannotShrink(Container(pod).Resources) {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError, Message: "Missing container memory usage"})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{c}
	return status
}

// isReported reports whether the pod's status is the one that the kubelet wrote.
func (cl *Cluster) isReported(p *Proc, pod *corev1.Pod) bool {
	return p.reported != nil && IsReady(pod) == (p.Runs && p.Serves) && equality.Semantic.DeepEqual(*p.reported, cl.podStatus(p, pod))
}

// writeStatus writes how a pod is.
func (cl *Cluster) writeStatus(p *Proc) {
	pod := cl.PodOf(p)
	if pod == nil || pod.UID != p.uid || cl.isReported(p, pod) {
		return
	}
	pod = pod.DeepCopy()
	pod.Status = cl.podStatus(p, pod)
	p.reported = pod.Status.DeepCopy()
	cl.updateStatus(pod)
}

// Crash kills the memcached of a pod, which loses its items: its container starts again, or one of the image that the pod has now.
func (p *Proc) Crash() {
	if pod := p.cluster.PodOf(p); pod != nil && pod.UID == p.uid {
		p.Runs = p.Image == Container(pod).Image
	}
	p.Serves, p.Items, p.saved, p.used, p.stopRead, p.moved = false, 0, savedItems{}, "", time.Time{}, agentwire.ScalingStatus{}
	p.Containers++
	p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "it crashed", At: p.cluster.Clock.Now()}
	p.cluster.writeStatus(p)
}
