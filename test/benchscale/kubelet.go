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
)

const (
	// containerName is what the operator calls memcached's container.
	containerName = "memcached"
	// starts is how long a container takes from its start until it is ready, and a
	// proof until it has ended.
	starts = time.Second
	// brings is how long it takes until an agent reads a new annotation of its pod.
	brings = 500 * time.Millisecond
	// podsPerNode is how many pods a node takes, about.
	podsPerNode = 100
	// kubeletWorkers is how many pods are looked after at once.
	kubeletWorkers = 16
)

// kubelet does what scheduler, kubelets and agents do with the pods that the operator
// wants, without running anything: it binds a pod to a node, has it become ready,
// starts its container anew when its image is changed, and lets it go.
type kubelet struct {
	set    kubernetes.Interface
	agents *agents
	// nodes is how many there are.
	nodes int
	pods  cache.SharedIndexInformer
	queue workqueue.TypedRateLimitingInterface[string]

	lock sync.Mutex
	// running is what runs in each pod, by namespace and name.
	running map[string]*runningPod
	made    int
}

// startKubelet starts one for so many pods. It ends with ctx.
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
		case err != nil && ctx.Err() == nil: // somebody else wrote the pod meanwhile, or the API server is busy
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

// sync brings one pod further, and returns after how long to look at it again; 0 is
// when it changes.
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
		return 0, k.end(ctx, pod)
	case pod.Spec.NodeName == "":
		return 0, k.bind(ctx, pod)
	}
	p := k.runningIn(key, pod)
	if pod.Labels[v1alpha1.LabelName] == v1alpha1.ProofNameValue {
		return k.prove(ctx, pod, p)
	}
	return k.run(ctx, pod, p)
}

// runningIn returns what runs in a pod.
func (k *kubelet) runningIn(key string, pod *corev1.Pod) *runningPod {
	k.lock.Lock()
	defer k.lock.Unlock()
	p, ok := k.running[key]
	if !ok || p.uid != pod.UID {
		k.made++
		p = &runningPod{uid: pod.UID, ip: loopback(k.made), seen: time.Now()}
		k.running[key] = p
	}
	return p
}

// loopback returns an address that is local on every Linux machine: another one for
// each pod, and 127.0.0.0/16 left out, where other programs listen.
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

// end does what a kubelet does when nothing of a pod runs any more.
func (k *kubelet) end(ctx context.Context, pod *corev1.Pod) error {
	err := k.set.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// bind does what the scheduler does: the shards of a Memcached come on different
// nodes.
func (k *kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	shard, err := strconv.Atoi(pod.Labels[v1alpha1.LabelShard])
	if err != nil {
		return fmt.Errorf("pod %s has no shard's label: %w", pod.Name, err)
	}
	node := (numberOf(pod.Labels[v1alpha1.LabelInstance])*shards + shard) % k.nodes
	return k.set.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: fmt.Sprintf("node-%03d", node)},
	}, metav1.CreateOptions{})
}

// prove has a proof succeed.
func (k *kubelet) prove(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	if pod.Status.Phase == corev1.PodSucceeded {
		return 0, nil
	}
	if wait := time.Until(p.seen.Add(starts)); wait > 0 {
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

// run brings a shard's pod further.
func (k *kubelet) run(ctx context.Context, pod *corev1.Pod, p *runningPod) (time.Duration, error) {
	now := time.Now()
	again := p.advance(pod, now)
	k.agents.tell(p.ip, p.status(now))
	if p.isTold(pod, now) {
		return again, nil
	}
	pod = pod.DeepCopy()
	p.write(&pod.Status, now)
	_, err := k.set.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return again, err
}

// versionOf returns the version of memcached that an image holds: its tag.
func versionOf(image string) string { return image[strings.LastIndex(image, ":")+1:] }
