package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// perShard is how many items a shard has when clients have filled it.
const perShard = 1000

// drains is how long a terminating pod keeps serving while no other pod has taken over.
const drains = 60 * time.Second

// proc is what runs of a pod on its node: a container, its agent and memcached.
type proc struct {
	w    *World
	uid  types.UID
	pod  string
	node string
	ip   string
	// shard that the pod is of.
	shard string
	// runs: the container does. The kubelet created it containers times, of image.
	runs       bool
	containers int
	image      string
	// waiting is the kubelet's reason for not running it.
	waiting, message string
	// brought are the annotations that the kubelet has brought into the pod.
	brought map[string]string
	// missed are annotations that it doesn't bring until they change again; nil for none.
	missed map[string]string
	// arguments in effect, and why newer ones are not.
	arguments, problem string
	restart            string
	// certificate that memcached serves.
	certificate string
	// used is the token that announced the stop before this container.
	used  string
	start agentwire.Start
	// starts of memcached.
	starts int
	items  int64
	// saved is how many items the data volume holds, by what memcached with what
	// arguments; without an image there are none.
	saved savedItems
	// serves: memcached answers and its pod should be ready.
	serves bool
	// receives: memcached runs for no client yet, since another pod of the shard has its items.
	receives bool
	// follows is the pod beside which it serves at the end of a handover in mode Available; nil for none.
	follows *proc
	// held until then, zero for never.
	held time.Time
	// resources in effect.
	resources corev1.ResourceRequirements
	resized   bool
	// reported is the status that was written last.
	reported *corev1.PodStatus
	unfit    string
}

type savedItems struct {
	items            int64
	image, arguments string
}

// kubelets run the pods of their nodes.
func kubelets(w *World) []action {
	var could []action
	for _, pod := range all[*corev1.Pod](w.server) {
		n := w.nodeNamed(pod.Spec.NodeName)
		if n == nil || n.down {
			continue
		}
		if isPreflight(pod) {
			could = append(could, w.preflight(pod)...)
			continue
		}
		could = append(could, w.run(pod)...)
	}
	return could
}

// preflight returns what can happen to a preflight pod.
func (w *World) preflight(pod *corev1.Pod) []action {
	if pod.DeletionTimestamp != nil {
		return []action{{"preflight pod " + pod.Name + " is deleted", func() { w.server.delete(pod, client.GracePeriodSeconds(0)) }}}
	}
	image := container(pod).Image
	state := corev1.ContainerStatus{Name: resources.Container, Image: image, ImageID: "i"}
	phase := corev1.PodSucceeded
	version := versionIn(image)
	switch {
	case hasEnded(pod) || len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil:
		return nil
	case strings.Contains(image, "busybox"):
		phase = corev1.PodFailed
		state.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "there is no memcached in the image", ContainerID: "containerd://preflight"}
	case version == "":
		phase = corev1.PodPending
		state.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}
	case rejectsArguments(container(pod).Args):
		phase = corev1.PodFailed
		state.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Message: "memcached rejects its arguments", ContainerID: "containerd://preflight"}
	default:
		state.State.Terminated = &corev1.ContainerStateTerminated{Message: fmt.Sprintf(`{"version":%q}`, version), ContainerID: "containerd://preflight"}
	}
	return []action{{fmt.Sprintf("preflight pod %s: %s", pod.Name, phase), func() {
		pod := pod.DeepCopy()
		pod.Status.Phase, pod.Status.ContainerStatuses = phase, []corev1.ContainerStatus{state}
		w.server.updateStatus(pod)
	}}}
}

// rejectsArguments reports whether memcached doesn't start with arguments.
func rejectsArguments(words []string) bool {
	text := strings.Join(words, " ")
	return strings.Contains(text, "-R 0") || strings.Contains(text, `"-R","0"`) || strings.Contains(text, "--no-such")
}

// run returns what could happen to a shard's pod.
func (w *World) run(pod *corev1.Pod) []action {
	p := w.procs[pod.UID]
	act := func(story string, do func()) []action {
		return []action{{fmt.Sprintf("pod %s %s", pod.Name, story), func() {
			do()
			if w.procs[p.uid] != nil {
				w.writeStatus(p)
			}
		}}}
	}
	if p == nil {
		p = &proc{w: w, uid: pod.UID, pod: pod.Name, node: pod.Spec.NodeName, shard: shardOf(pod), ip: w.newIP()}
		return act("begins", func() { w.procs[pod.UID] = p })
	}
	if pod.DeletionTimestamp != nil {
		if p.runs && p.serves && (!w.servedByOther(p) || w.isFollowed(p)) && w.clock.Now().Sub(pod.DeletionTimestamp.Time) < drains {
			return nil // it waits for who takes over
		}
		return act("ends", func() {
			w.watch.gone(p)
			delete(w.procs, pod.UID)
			w.server.delete(pod, client.GracePeriodSeconds(0))
		})
	}
	var could []action
	switch {
	case maps.Equal(p.brought, pod.Annotations):
	case p.missed == nil && p.brought != nil && (w.forgetful || w.faulty(w.faults.misses)):
		could = append(could, act("misses a change", func() {
			w.log("fault", "the kubelet misses a change of pod %s", p.pod)
			p.missed = maps.Clone(pod.Annotations)
		})...)
	case !maps.Equal(p.missed, pod.Annotations):
		could = append(could, act("is brought its annotations", func() { p.bring(pod) })...)
	}
	c := container(pod)
	switch {
	case p.runs && p.image != c.Image:
		could = append(could, act("stops its container for another image", p.stop)...)
	case !p.runs && (p.waiting == "" || p.image != c.Image):
		could = append(could, act("starts its container", func() { p.begin(pod) })...)
	case !p.runs:
	case p.brought[annotations.Arguments] != p.arguments && p.announced() == "" && p.problem == "":
		could = append(could, act("restarts memcached with other arguments", func() { p.rearm() })...)
	case p.brought[v1alpha1.AnnotationRestart] != p.restart && p.announced() == "" && p.problem == "" && p.serves:
		could = append(could, act("restarts memcached as its annotation says", func() { p.rearm() })...)
	case p.brought[annotations.Arguments] == p.arguments && p.problem != "":
		could = append(could, act("has its arguments again", func() { p.problem = "" })...)
	case p.receives:
		switch from := w.source(p); {
		case from == nil:
			could = append(could, act("has no one to receive its items from", func() { p.receives = false })...)
		case w.podOf(from).DeletionTimestamp != nil && pod.Annotations[annotations.Handover] == string(v1alpha1.HandoverAvailable):
			could = append(could, act("has the items of pod "+from.pod+", and both serve", func() {
				p.items, p.receives, p.serves, p.follows = from.items, false, true, from
			})...)
		case w.podOf(from).DeletionTimestamp != nil:
			could = append(could, act("receives the items of pod "+from.pod, func() { w.handOver(from, p) })...)
		}
	case p.follows != nil && w.source(p) == p.follows:
		could = append(could, act("serves without pod "+p.follows.pod, func() { w.handOver(p.follows, p) })...)
	case p.follows != nil:
		could = append(could, act("has lost pod "+p.follows.pod+" while both served", func() {
			p.items, p.follows = 0, nil
			p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "the source was lost while both pods served", At: w.clock.Now()}
		})...)
	case !p.serves && !w.clock.Now().Before(p.held):
		could = append(could, act("serves", func() { w.serve(p) })...)
	case p.serves && p.items < perShard:
		could = append(could, act("is filled by its clients", func() { p.items = perShard })...)
	}
	if p.runs && p.unfit != resourcesText(c.Resources) && !p.cannotShrink(c.Resources) && !equality.Semantic.DeepEqual(p.resources, c.Resources) {
		could = append(could, act("is resized", func() { w.resize(p, c.Resources) })...)
	}
	if p.runs && !w.isReported(p, pod) {
		could = append(could, act("reports its status", func() {})...)
	}
	return could
}

func (w *World) newIP() string {
	w.made++
	return fmt.Sprintf("10.1.%d.%d", w.made/250, 1+w.made%250)
}

// servedByOther reports whether another pod of the shard is ready.
func (w *World) servedByOther(p *proc) bool {
	for _, pod := range all[*corev1.Pod](w.server) {
		if pod.UID != p.uid && shardOf(pod) == p.shard && isReady(pod) {
			return true
		}
	}
	return false
}

// source returns what runs of another pod of the shard that serves and can hand over its items, nil when
// none does.
func (w *World) source(p *proc) *proc {
	for _, pod := range all[*corev1.Pod](w.server) {
		from := w.procs[pod.UID]
		if from != nil && from != p && from.shard == p.shard && from.runs && from.serves && resources.CanHandOver(pod) && !w.nodeOf(from).down {
			return from
		}
	}
	return nil
}

// isFollowed reports whether another pod of the shard serves beside a pod that hands over its items.
func (w *World) isFollowed(from *proc) bool {
	for _, p := range w.procs {
		if p.follows == from && p.runs {
			return true
		}
	}
	return false
}

// handOver moves the items to another pod, which then serves.
func (w *World) handOver(from, to *proc) {
	to.start = agentwire.Start{Result: agentwire.StartHandedOver, Items: from.items, ItemsBefore: from.items, At: w.clock.Now()}
	to.items, to.receives, to.serves, to.follows = from.items, false, true, nil
	from.items, from.serves = 0, false
	w.writeStatus(to)
	w.writeStatus(from)
}

// announced is the token by which a stop of the container only is announced.
func (p *proc) announced() string {
	if token := p.brought[annotations.Stop]; token != p.used {
		return token
	}
	return ""
}

// bring brings the pod's annotations into it.
func (p *proc) bring(pod *corev1.Pod) {
	p.brought, p.missed = maps.Clone(pod.Annotations), nil
	if !p.held.IsZero() { // nothing holds one later that was not held at its start
		p.held, _ = time.Parse(time.RFC3339, p.brought[annotations.HoldUntil])
	}
}

// stop stops the container, whose image is another one now.
func (p *proc) stop() {
	if p.serves {
		p.w.watch.stops(p, p.announced() != "")
	}
	p.saved = savedItems{p.items, p.image, p.arguments}
	p.used = p.announced()
	p.runs, p.serves, p.follows = false, false, nil // the next container starts empty
}

// begin starts the container.
func (p *proc) begin(pod *corev1.Pod) {
	w := p.w
	p.image, p.waiting, p.message = container(pod).Image, "", ""
	version := versionIn(p.image)
	switch {
	case strings.Contains(p.image, "busybox"):
		p.containers++
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
	p.containers++
	if rejectsArguments([]string{arguments}) {
		p.waiting, p.message = "CrashLoopBackOff", "memcached rejects its arguments"
		return
	}
	p.runs, p.serves, p.arguments, p.problem = true, false, arguments, ""
	p.resources = container(pod).Resources
	p.load()
	p.receives = p.containers == 1 && resources.CanHandOver(pod) && w.source(p) != nil
	if until, err := time.Parse(time.RFC3339, p.brought[annotations.HoldUntil]); err == nil && w.clock.Now().Before(until) {
		p.held = until
	}
}

// rearm restarts memcached in its container with the arguments that were brought.
func (p *proc) rearm() {
	arguments := p.brought[annotations.Arguments]
	if rejectsArguments([]string{arguments}) {
		p.problem = "memcached does not start with them"
		return
	}
	if p.serves {
		p.w.watch.out(p.w.podOf(p), byOperator)
	}
	p.saved = savedItems{p.items, p.image, p.arguments}
	p.arguments, p.serves = arguments, false
	p.load()
}

// load has memcached start with what the data volume holds.
func (p *proc) load() {
	p.starts++
	p.restart, p.certificate = p.brought[v1alpha1.AnnotationRestart], p.w.certificate
	before := p.saved.items
	p.start = agentwire.Start{Result: agentwire.StartCold, Reason: "nothing was saved", ItemsBefore: before, At: p.w.clock.Now()}
	if p.saved.image != "" && shape(p.saved.arguments) == shape(p.arguments) {
		p.start = agentwire.Start{Result: agentwire.StartWarm, Items: before, ItemsBefore: before, At: p.w.clock.Now()}
	}
	if p.items = p.start.Items; before > p.items {
		p.w.watch.lost(p, before)
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
func (w *World) resize(p *proc, want corev1.ResourceRequirements) {
	if p.unfit = ""; want.Requests.Memory().Value() > w.nodeOf(p).memory {
		p.unfit = resourcesText(want)
		return
	}
	p.resources, p.resized = want, true
}

// serve lets clients in.
func (w *World) serve(p *proc) {
	p.serves = true
	if _, before := w.servedWith[p.shard]; before {
		return
	}
	w.servedWith[p.shard] = "no restore"
	for _, r := range all[*v1alpha1.MemcachedRestore](w.server) {
		w.servedWith[p.shard] = fmt.Sprintf("restore %s %s", r.Name, r.Status.Phase)
	}
}

// cannotShrink reports whether the kubelet never takes memory away for some resources. It first
// looks for the usage of all containers of that name, and containerd doesn't know that of one that
// has exited (Kubernetes 1.37).
func (p *proc) cannotShrink(to corev1.ResourceRequirements) bool {
	limit, ok := to.Limits[corev1.ResourceMemory]
	has, limited := p.resources.Limits[corev1.ResourceMemory]
	return p.containers > 1 && ok && (!limited || limit.Cmp(has) < 0)
}

// resourcesOf returns the resources of a pod's container, or those that it has as soon as the
// kubelet can take memory away.
func (p *proc) resourcesOf(pod *corev1.Pod) corev1.ResourceRequirements {
	if want := container(pod).Resources; p.cannotShrink(want) {
		return want
	}
	return p.resources
}

func resourcesText(r corev1.ResourceRequirements) string {
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (w *World) podOf(p *proc) *corev1.Pod { return get[*corev1.Pod](w.server, p.pod) }

// status is the agent's answer.
func (p *proc) status() agentwire.Status {
	var words []string
	_ = json.Unmarshal([]byte(p.arguments), &words)
	phase := agentwire.PhaseServing
	if p.receives {
		phase = agentwire.PhaseReceiving
	} else if p.follows != nil {
		phase = agentwire.PhaseFollowing
	} else if !p.serves && p.held.IsZero() { // one whose readiness is delayed runs, and only clients do not see it
		phase = agentwire.PhaseRestarting
	}
	secrets := &agentwire.Secrets{Certificate: agentwire.Certificate{Offered: p.w.certificate}}
	if slices.Contains(words, "-Z") {
		c := &secrets.Certificate
		c.SHA256, c.NotBefore, c.NotAfter = p.certificate, p.start.At, p.start.At.AddDate(1, 0, 0)
		if c.SHA256 != c.Offered {
			c.RestartRequired = "its key is of another type"
		}
	}
	return agentwire.Status{
		Secrets: secrets, Phase: phase, PodUID: string(p.uid), Version: versionIn(p.image), Arguments: words, ArgumentsError: p.problem,
		AnnouncedStop: p.announced(), Restart: p.restart, HoldUntil: p.held, Start: p.start, Items: p.items,
		RecentGets: 5000, RecentHits: 4000, Gets: 5000, Hits: 4000,
	}
}

// podStatus returns the status that a kubelet writes.
func (w *World) podStatus(p *proc, pod *corev1.Pod) corev1.PodStatus {
	ready := corev1.ConditionFalse
	if p.runs && p.serves {
		ready = corev1.ConditionTrue
	}
	c := corev1.ContainerStatus{Name: resources.Container, Image: p.image, ImageID: "i", Ready: p.runs && p.serves, RestartCount: int32(max(p.containers-1, 0))} //nolint:gosec // a few
	status := corev1.PodStatus{
		Phase:      corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: ready}},
	}
	if p.containers > 0 {
		status.Phase, status.PodIP, status.PodIPs = corev1.PodRunning, p.ip, []corev1.PodIP{{IP: p.ip}}
		c.ContainerID = fmt.Sprintf("containerd://%d-%s", p.containers, p.uid)
	}
	switch {
	case p.runs:
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
	if p.unfit != "" && p.unfit == resourcesText(container(pod).Resources) {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "the node has not that much"})
	}
	if p.cannotShrink(container(pod).Resources) {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue, Reason: corev1.PodReasonError, Message: "missing container memory usage"})
	}
	status.ContainerStatuses = []corev1.ContainerStatus{c}
	return status
}

// isReported reports whether the pod's status is the one that the kubelet wrote.
func (w *World) isReported(p *proc, pod *corev1.Pod) bool {
	return p.reported != nil && isReady(pod) == (p.runs && p.serves) && equality.Semantic.DeepEqual(*p.reported, w.podStatus(p, pod))
}

// writeStatus writes how a pod is.
func (w *World) writeStatus(p *proc) {
	pod := w.podOf(p)
	if pod == nil || pod.UID != p.uid || w.isReported(p, pod) {
		return
	}
	pod = pod.DeepCopy()
	pod.Status = w.podStatus(p, pod)
	p.reported = pod.Status.DeepCopy()
	w.server.updateStatus(pod)
}
