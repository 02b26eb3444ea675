package main

import (
	"context"
	"fmt"
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

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	containerName = "memcached"
	// startDelay is how long a container takes until it is ready, and a preflight check until it succeeds.
	startDelay = time.Second
	// annotationDelay is how long it takes until an agent reads a new annotation of its pod.
	annotationDelay = 500 * time.Millisecond
	// silentAgent is an annotation of pods whose agent doesn't answer.
	silentAgent    = "bench/silent"
	podsPerNode    = 100
	kubeletWorkers = 16
)

// kubelet replaces scheduler, kubelets and agents without running anything: it binds a pod to a node, reports it as
// ready, restarts its container when the image changes, and deletes it.
type kubelet struct {
	client.Client
	agents *agents
	nodes  int

	lock sync.Mutex
	// running are the pods by namespace and name, created counts them.
	running map[types.NamespacedName]*runningPod
	created int
}

// startKubelet starts a kubelet for so many pods that stops with ctx.
func startKubelet(ctx context.Context, config *rest.Config, pods int) error {
	managed := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue})
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: managed, Transform: cache.TransformStripManagedFields()},
		}},
	})
	if err != nil {
		return err
	}
	k := &kubelet{Client: manager.GetClient(), nodes: max(3, (pods+podsPerNode-1)/podsPerNode), running: map[types.NamespacedName]*runningPod{}}
	if k.agents, err = startAgents(ctx); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.Pod{}).WithOptions(controller.Options{
		MaxConcurrentReconciles: kubeletWorkers,
		SkipNameValidation:      new(true), // each run has one
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](10*time.Millisecond, time.Second),
	}).Complete(k)
	if err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }() // without a pod no phase ends
	return nil
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
	run, p := k.runShard, k.runningIn(request.NamespacedName, pod)
	if pod.Labels[v1alpha1.LabelName] == annotations.PreflightName {
		run = k.runPreflight
	}
	again, err := run(ctx, pod, p)
	return ctrl.Result{RequeueAfter: again}, err
}

func (k *kubelet) runningIn(key types.NamespacedName, pod *corev1.Pod) *runningPod {
	k.lock.Lock()
	defer k.lock.Unlock()
	p, ok := k.running[key]
	if !ok || p.uid != pod.UID {
		k.created++
		p = &runningPod{uid: pod.UID, ip: loopback(k.created), seen: time.Now()}
		k.running[key] = p
	}
	return p
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
		k.agents.forget(p.ip)
		delete(k.running, key)
	}
}

// bind schedules a pod. The shards of a Memcached get different nodes.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	shard, err := strconv.Atoi(pod.Labels[v1alpha1.LabelShard])
	if err != nil {
		return fmt.Errorf("pod %s has no label of its shard: %w", pod.Name, err)
	}
	node := (numberOf(pod.Labels[v1alpha1.LabelInstance])*shards + shard) % k.nodes
	return k.SubResource("binding").Create(ctx, pod, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%03d", node)},
	})
}

// runPreflight lets a preflight check succeed.
func (k *kubelet) runPreflight(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return 0, nil
	}
	if wait := time.Until(p.seen.Add(startDelay)); wait > 0 {
		return wait, nil
	}
	image := pod.Spec.Containers[0].Image
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: image, ImageID: image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", ContainerID: "containerd://" + string(p.uid), Message: fmt.Sprintf(`{"version":%q}`, versionOf(image)),
		}}}}
	return 0, k.Status().Update(ctx, pod)
}

// runShard advances the pod of a shard.
func (k *kubelet) runShard(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	now := time.Now()
	again := p.advance(pod, now)
	if k.agents.set(p.ip, p.status(now)); pod.Annotations[silentAgent] != "" {
		k.agents.silence(p.ip)
	}
	if p.isReported(pod, now) {
		return again, nil
	}
	p.write(&pod.Status, now)
	return again, k.Status().Update(ctx, pod)
}

// versionOf returns the version of memcached in an image, which is its tag.
func versionOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }
