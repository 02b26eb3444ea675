package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

const (
	containerName = "memcached"
	// startDelay is how long a container takes until it is ready, and a preflight check until it succeeds.
	startDelay = time.Second
	// annotationDelay is how long it takes until an agent reads a new annotation of its pod.
	annotationDelay = 500 * time.Millisecond
	podsPerNode     = 100
	kubeletWorkers  = 16
)

// kubelet replaces scheduler, kubelets and agents without running anything: it binds a pod to a node, reports it as
// ready, restarts its container when the image changes, and deletes it.
type kubelet struct {
	set    kubernetes.Interface
	agents *agents
	nodes  int
	pods   cache.SharedIndexInformer
	queue  workqueue.TypedRateLimitingInterface[string]

	lock sync.Mutex
	// running has a pod by its namespace and name, created counts the pods.
	running map[string]*runningPod
	created int
}

// startKubelet starts a kubelet for so many pods that stops with ctx.
func startKubelet(ctx context.Context, config *rest.Config, pods int) (*kubelet, error) {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	k := &kubelet{
		set: set, nodes: max(3, (pods+podsPerNode-1)/podsPerNode), running: map[string]*runningPod{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, time.Second)),
	}
	if k.agents, err = startAgents(ctx); err != nil {
		return nil, err
	}
	ours := labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}).String()
	factory := informers.NewSharedInformerFactoryWithOptions(set, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = ours }),
		informers.WithTransform(withoutManagedFields))
	k.pods = factory.Core().V1().Pods().Informer()
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			k.queue.Add(key)
		}
	}
	if _, err := k.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add}); err != nil {
		return nil, err
	}
	factory.StartWithContext(ctx)
	context.AfterFunc(ctx, k.queue.ShutDown)
	for range kubeletWorkers {
		go k.work(ctx)
	}
	return k, nil
}

func withoutManagedFields(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

func (k *kubelet) work(ctx context.Context) {
	for {
		key, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		again, err := k.sync(ctx, key)
		switch {
		case err != nil && ctx.Err() == nil: // a conflict, or the API server is busy
			k.queue.AddRateLimited(key)
		case again > 0:
			k.queue.Forget(key)
			k.queue.AddAfter(key, again)
		default:
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

// sync advances one pod. It returns when to do so again; 0 means when the pod changes.
func (k *kubelet) sync(ctx context.Context, key string) (time.Duration, error) {
	o, exists, err := k.pods.GetStore().GetByKey(key)
	if err != nil {
		return 0, err
	}
	if !exists {
		k.forget(key)
		return 0, nil
	}
	pod := o.(*corev1.Pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return 0, k.delete(ctx, pod)
	case pod.Spec.NodeName == "":
		return 0, k.bind(ctx, pod)
	}
	p := k.runningIn(key, pod)
	if pod.Labels[v1alpha1.LabelName] == annotations.PreflightName {
		return k.runPreflight(ctx, pod, p)
	}
	return k.runShard(ctx, pod, p)
}

func (k *kubelet) runningIn(key string, pod *corev1.Pod) *runningPod {
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

func (k *kubelet) forget(key string) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if p, ok := k.running[key]; ok {
		k.agents.forget(p.ip)
		delete(k.running, key)
	}
}

// delete deletes a terminating pod, as a kubelet does when its containers have exited.
func (k *kubelet) delete(ctx context.Context, pod *corev1.Pod) error {
	err := k.set.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bind schedules a pod. The shards of a Memcached get different nodes.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	shard, err := strconv.Atoi(pod.Labels[v1alpha1.LabelShard])
	if err != nil {
		return fmt.Errorf("pod %s has no label of its shard: %w", pod.Name, err)
	}
	node := (numberOf(pod.Labels[v1alpha1.LabelInstance])*shards + shard) % k.nodes
	return k.set.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%03d", node)},
	}, metav1.CreateOptions{})
}

// runPreflight lets a preflight check succeed.
func (k *kubelet) runPreflight(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return 0, nil
	}
	if wait := time.Until(p.seen.Add(startDelay)); wait > 0 {
		return wait, nil
	}
	pod = pod.DeepCopy()
	image := pod.Spec.Containers[0].Image
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, Image: image, ImageID: image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", ContainerID: "containerd://" + string(p.uid), Message: fmt.Sprintf(`{"version":%q}`, versionOf(image)),
		}}}}
	_, err := k.set.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return 0, err
}

// runShard advances the pod of a shard.
func (k *kubelet) runShard(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	now := time.Now()
	again := p.advance(pod, now)
	k.agents.set(p.ip, p.status(now))
	if p.isReported(pod, now) {
		return again, nil
	}
	pod = pod.DeepCopy()
	p.write(&pod.Status, now)
	_, err := k.set.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return again, err
}

// versionOf returns the version of memcached in an image, which is its tag.
func versionOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }
