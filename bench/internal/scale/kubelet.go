package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	containerName = "memcached"
	// StartDelay is how long a container takes until it is ready, and a preflight check until it succeeds.
	StartDelay = time.Second
	// AnnotationDelay is how long it takes until an agent reads a new annotation of its pod.
	AnnotationDelay = 500 * time.Millisecond
	// SilentAgent is an annotation of pods whose agent doesn't answer, as behind a network policy that drops packets.
	SilentAgent = "bench/silent"
	podsPerNode = 100
	workers     = 16
)

// kubelet replaces scheduler, kubelets and agents without running anything: it binds a pod to a node, reports it as ready,
// restarts its container when the image changes, and deletes it. It answers for the agents of all pods: their addresses are this
// machine's, so the local address of a connection names the pod.
type kubelet struct {
	client.Client
	nodes int

	lock sync.Mutex
	// running are the pods by namespace and name, byIP by address, created counts them.
	running map[types.NamespacedName]*runningPod
	byIP    map[string]*runningPod
	created int
}

// StartKubelet starts a kubelet for so many pods that stops with ctx.
func StartKubelet(ctx context.Context, config *rest.Config, pods int) error {
	managed := labels.SelectorFromSet(labels.Set{v1beta1.LabelManagedBy: v1beta1.ManagedByValue})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: managed, Transform: cache.TransformStripManagedFields()},
		}},
	})
	if err != nil {
		return err
	}
	k := &kubelet{Client: manager.GetClient(), nodes: max(3, (pods+podsPerNode-1)/podsPerNode),
		running: map[types.NamespacedName]*runningPod{}, byIP: map[string]*runningPod{}}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "0.0.0.0:"+strconv.Itoa(agentwire.Port))
	if err != nil {
		return fmt.Errorf("listening on the port of agents: %w", err)
	}
	server := &http.Server{Handler: k, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // stops with ctx
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).WithOptions(controller.Options{
		MaxConcurrentReconciles: workers,
		SkipNameValidation:      new(true), // each run has one
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](10*time.Millisecond, time.Second),
	}).Complete(k)
	if err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }() // without a pod, nothing is ever ready
	return nil
}

// ServeHTTP answers for an agent.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reached, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || r.URL.Path != "/status" {
		http.NotFound(w, r)
		return
	}
	k.lock.Lock()
	var status agentwire.Status
	p := k.byIP[reached.IP.String()]
	started := p != nil && p.containers > 0
	if started {
		status = p.status(time.Now())
	}
	k.lock.Unlock()
	switch {
	case !started:
		http.NotFound(w, r)
	case p.silent:
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(status) // the client disconnected
	}
}

// Reconcile advances one pod. After an error, a conflict or a busy API server, it does so again.
func (k *kubelet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := k.Get(ctx, request.NamespacedName, pod); err != nil {
		k.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case pod.DeletionTimestamp != nil: // its containers have exited
		err := k.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
		return ctrl.Result{}, client.IgnoreNotFound(err)
	case pod.Spec.NodeName == "":
		return ctrl.Result{}, k.bind(ctx, pod)
	}
	write, again := k.advance(request.NamespacedName, pod)
	if !write {
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{RequeueAfter: again}, k.Status().Update(ctx, pod)
}

// advance applies to a pod what is due, and returns whether its status has changed and when the next change is due.
func (k *kubelet) advance(key types.NamespacedName, pod *corev1.Pod) (write bool, again time.Duration) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := time.Now()
	p, ok := k.running[key]
	if !ok || p.uid != pod.UID {
		if ok {
			delete(k.byIP, p.ip)
		}
		k.created++
		p = &runningPod{uid: pod.UID, ip: loopback(k.created), seen: now, silent: pod.Annotations[SilentAgent] != ""}
		k.running[key], k.byIP[p.ip] = p, p
	}
	if pod.Labels[v1beta1.LabelName] == annotations.PreflightName {
		return p.runPreflight(pod, now)
	}
	again = p.advance(pod, now)
	if write = !p.isReported(pod, now); write {
		p.write(&pod.Status, now)
	}
	return write, again
}

// loopback returns the address of a pod, which is local on every Linux machine. It is not in 127.0.0.0/16, where other
// programs listen.
func loopback(pod int) string {
	return fmt.Sprintf("127.%d.%d.%d", 1+pod>>16&0x7f, pod>>8&0xff, pod&0xff)
}

func (k *kubelet) forget(key types.NamespacedName) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if p, ok := k.running[key]; ok {
		delete(k.byIP, p.ip)
		delete(k.running, key)
	}
}

// bind schedules a pod. The shards of a Memcached get different nodes.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	shard, err := strconv.Atoi(pod.Labels[v1beta1.LabelShard])
	if err != nil {
		return fmt.Errorf("pod %s has no label of its shard: %w", pod.Name, err)
	}
	memcached, _ := strconv.Atoi(strings.TrimPrefix(pod.Labels[v1beta1.LabelInstance], "m")) // 0 for one that is not a fleet's
	return k.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%03d", (memcached*Shards+shard)%k.nodes)},
	})
}
