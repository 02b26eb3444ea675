package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/benchscale/usage"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	build "github.com/memcached-operator/memcached-operator/test/internal/operator"
	"github.com/memcached-operator/memcached-operator/test/internal/report"
)

// The tests run the operator's program as its Deployment does, with its memory limit. Nothing enforces the limit here, so
// the tests compare the peak of the operator's memory with it.

// withOperator calls use with a new API server, for which the operator is installed and not started.
func withOperator(t *testing.T, pods int, use func(ctx context.Context, s *scene)) {
	t.Helper()
	log.SetLogger(logr.Discard())
	b := &bench{dir: t.TempDir(), say: t.Logf, withoutControllers: true}
	t.Setenv("TMPDIR", b.dir) // of the API server and etcd, too
	var err error
	if b.program = os.Getenv("OPERATOR_PROGRAM"); b.program == "" {
		if b.program, err = build.Build(t.Context(), b.dir); err != nil {
			t.Fatal(err)
		}
	}
	err = b.withScene(t.Context(), 1, func(ctx context.Context, s *scene) error {
		if err := errors.Join(startKubelet(ctx, s.admin, pods), startReplicaSets(ctx, s.admin)); err != nil {
			return err
		}
		use(ctx, s)
		if t.Failed() {
			return fmt.Errorf("failed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// replicaSets replaces Kubernetes' controller of ReplicaSets, and its garbage collector for pods.
type replicaSets struct{ client.Client }

func startReplicaSets(ctx context.Context, config *rest.Config) error {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue}), Transform: cache.TransformStripManagedFields()}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: managed, &appsv1.ReplicaSet{}: managed}},
	})
	if err != nil {
		return err
	}
	const controllerOf = "controller"
	err = errors.Join(
		manager.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, controllerOf, func(o client.Object) []string {
			return []string{ptr.Deref(metav1.GetControllerOf(o), metav1.OwnerReference{}).Name}
		}),
		ctrl.NewControllerManagedBy(manager).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: kubeletWorkers, SkipNameValidation: new(true)}).
			Complete(reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, replicaSets{manager.GetClient()}.sync(ctx, request, client.MatchingFields{controllerOf: request.Name})
			})))
	if err != nil {
		return err
	}
	go func() { _ = manager.Start(ctx) }() // without a pod no test passes
	return nil
}

// sync creates the pods of a ReplicaSet, with names that exist once, and deletes others.
func (r replicaSets) sync(ctx context.Context, request ctrl.Request, ofSet client.MatchingFields) error {
	set := &appsv1.ReplicaSet{}
	if err := r.Get(ctx, request.NamespacedName, set); client.IgnoreNotFound(err) != nil {
		return err
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(request.Namespace), ofSet); err != nil {
		return err
	}
	missing := int(ptr.Deref(set.Spec.Replicas, 0))
	for i := range pods.Items {
		pod := &pods.Items[i]
		if set.UID != "" && metav1.IsControlledBy(pod, set) && missing > 0 {
			missing--
		} else if pod.DeletionTimestamp == nil {
			if err := client.IgnoreNotFound(r.Delete(ctx, pod)); err != nil {
				return err
			}
		}
	}
	for i := range missing {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, fmt.Sprintf("%s-%s-%d", set.Name, set.UID[:5], len(pods.Items)+i)
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		if err := r.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// The API server accepts 256 KiB of annotations per object.
var largeAnnotation = map[string]string{"example.com/large": strings.Repeat("x", 250<<10)}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func createAll(ctx context.Context, t *testing.T, c client.Client, n int, object func(i int) client.Object) {
	t.Helper()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error { return c.Create(ctx, object(i)) })
	}
	must(t, group.Wait())
}

// wantPeak fails the test if the operator's memory ever was above its limit.
func (s *scene) wantPeak(t *testing.T, when string) {
	t.Helper()
	must(t, s.operator.process.runs())
	memory, err := usage.MemoryOf(s.operator.process.process.Pid)
	must(t, err)
	t.Logf("%s: memory %s, peak %s, limit %s", when, report.Mebibytes(memory.Now), report.Mebibytes(memory.Peak), report.Mebibytes(s.operator.limit))
	if memory.Peak > s.operator.limit {
		t.Errorf("%s the operator used %s, and its limit is %s", when, report.Mebibytes(memory.Peak), report.Mebibytes(s.operator.limit))
	}
}

func namespaceOf(ctx context.Context, t *testing.T, c client.Client, name string) string {
	t.Helper()
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

func backupOf(namespace, name, memcached string) *v1alpha1.MemcachedBackup {
	b := &v1alpha1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.MemcachedRef.Name = memcached
	b.Spec.Store.PersistentVolumeClaim = &v1alpha1.PersistentVolumeClaimStore{ClaimName: "backups"}
	return b
}

// A tenant's objects carry 250 MB of annotations, and his Memcacheds 150 MB of clients: more than the operator's memory.
func TestMemoryStaysWithinTheLimitWithLargeObjectsOfTenants(t *testing.T) {
	withOperator(t, 1000, func(ctx context.Context, s *scene) {
		loud := namespaceOf(ctx, t, s.client, "loud")
		managed := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedByValue, v1alpha1.LabelInstance: "cache"}
		createAll(ctx, t, s.client, 500, func(i int) client.Object {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: loud, Name: fmt.Sprintf("large-%d", i), Labels: managed, Annotations: largeAnnotation},
				Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
			}
		})
		createAll(ctx, t, s.client, 500, func(i int) client.Object {
			b := backupOf(loud, fmt.Sprintf("large-%d", i), "none")
			b.Annotations = largeAnnotation
			return b
		})
		createAll(ctx, t, s.client, 150, func(i int) client.Object {
			m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: loud, Name: fmt.Sprintf("large-%d", i)}}
			m.Spec.NetworkPolicy.AllowedClients = slices.Repeat([]networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{strings.Repeat("x", 63)}, 500)}},
			}}}, 32)
			return m
		})
		fleet, err := newFleet(ctx, s.client, s.admin, 1, 1)
		must(t, err)
		environment := s.operator.env
		s.operator.env = append(slices.Clone(environment), "KUBE_FEATURE_WatchListClient=false")
		must(t, s.startOperator(ctx))
		o := &observer{scene: s, fleet: fleet, began: time.Now()}
		must(t, o.all(ctx, "Available", isAvailable, func(ctx context.Context) error { return fleet.create(ctx, "1.6.45") }))
		t.Logf("another tenant's Memcached was Available after %s", time.Since(o.began).Round(time.Millisecond))
		s.wantPeak(t, "with 1,000 objects of 250 KiB and 150 of 1 MiB that were listed")
		must(t, s.stopOperator())
		s.operator.env = environment
		must(t, s.startOperator(ctx))
		must(t, cluster.Eventually(ctx, time.Minute, "a reconcile", func(ctx context.Context) error {
			if g, err := s.operator.metrics.read(ctx); err != nil || g.Reconciles == 0 {
				return fmt.Errorf("%d reconciles, error %v", g.Reconciles, err) //nolint:errorlint // err may be nil
			}
			return nil
		}))
		s.wantPeak(t, "with 1,000 objects of 250 KiB and 150 of 1 MiB that were streamed")

		large := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(ctx, t, s.client, "large"), Name: "cache", Annotations: largeAnnotation}}
		large.Spec.Size = ptr.To[int32](1000)
		large.Spec.PodMetadata.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 100<<10)}
		if err := s.client.Create(ctx, large.DeepCopy()); err == nil || !strings.Contains(err.Error(), "8192") {
			t.Errorf("100 KiB of pod annotations: %v", err)
		}
		large.Spec.PodMetadata.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 8192-len("example.com/large"))}
		must(t, s.client.Create(ctx, large))
		must(t, cluster.Eventually(ctx, 10*time.Minute, "1,000 shards", func(ctx context.Context) error {
			m := &v1alpha1.Memcached{}
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(large), m); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionAvailable) {
				return fmt.Errorf("%s shards are ready", m.Status.Ready)
			}
			return nil
		}))
		s.wantPeak(t, "with 1,000 shards with as many pod annotations as possible too")
	})
}

// loss is what happened after the ReplicaSet of a shard was deleted, by the API server's clock.
type loss struct {
	// noticed is when the operator sent the first request for the shard, and replaced when its ReplicaSet existed again.
	noticed, replaced time.Duration
	// before is how many other requests the operator sent until then.
	before int
}

// lossesOf returns the losses since a moment, and how many shards are not replaced yet.
func lossesOf(requests []audit.Request, since time.Time) (losses []loss, missing int) {
	isSet := func(r audit.Request) bool { return r.Resource == "replicasets" && r.Code < 300 }
	for i, lost := range requests {
		if lost.User != adminUser || lost.Verb != "delete" || !isSet(lost) || lost.Received.Before(since) {
			continue
		}
		l, others, replaced := loss{}, 0, false
		for _, r := range requests[i+1:] {
			switch {
			case r.User != operatorUser || r.Received.Before(lost.Answered):
			case r.Namespace != lost.Namespace || r.Name != lost.Name:
				others++
			default:
				if l.noticed == 0 {
					l.noticed, l.before = r.Received.Sub(lost.Answered), others
				}
				replaced = r.Made() && isSet(r)
			}
			if replaced {
				l.replaced = r.Answered.Sub(lost.Answered)
				break
			}
		}
		if replaced {
			losses = append(losses, l)
		} else {
			missing++
		}
	}
	return losses, missing
}

// lose deletes shard 0 of each Memcached of a fleet, one after the other, and returns what happened.
func (s *scene) lose(ctx context.Context, t *testing.T, f *fleet, rounds int) (losses []loss) {
	t.Helper()
	since := time.Now()
	for round := range rounds {
		for number := range f.size {
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespaceOf(number), Name: nameOf(number) + "-0"}}
			must(t, s.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			must(t, cluster.Sleep(ctx, 100*time.Millisecond))
		}
		must(t, cluster.Eventually(ctx, 3*time.Minute, "the shards are replaced", func(context.Context) error {
			all, err := s.log.Requests()
			if err != nil {
				return err
			}
			missing := 0
			if losses, missing = lossesOf(all, since); missing > 0 || len(losses) < (round+1)*f.size {
				return fmt.Errorf("%d of %d are", len(losses), (round+1)*f.size)
			}
			return nil
		}))
	}
	return losses
}

// median returns the median and the highest of a figure.
func median[T cmp.Ordered](losses []loss, figure func(loss) T) (middle, highest T) {
	var all []T
	for _, l := range losses {
		all = append(all, figure(l))
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// repeat calls do until ctx ends, with a pause between two calls. A tenant doesn't care for errors.
func repeat(ctx context.Context, pause time.Duration, do func(i int)) {
	go func() {
		for i := 0; cluster.Sleep(ctx, pause) == nil; i++ {
			do(i)
		}
	}()
}

// startTenants starts five tenants that do the worst that Memcacheds and backups allow.
func startTenants(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	memcached := func(namespace, name, spec string) *v1alpha1.Memcached {
		m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		must(t, c.Create(ctx, m))
		must(t, c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(spec))))
		return m
	}
	patch := func(m *v1alpha1.Memcached, patch string, arguments ...any) {
		_ = c.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, arguments...)))
	}
	flips := namespaceOf(ctx, t, c, "flips")
	for i := range 8 {
		m := memcached(flips, fmt.Sprintf("m%d", i), `{"spec":{"size":1000}}`)
		repeat(ctx, 10*time.Second, func(i int) { patch(m, `{"spec":{"size":%d}}`, i%2*1000) })
	}
	silent := namespaceOf(ctx, t, c, "silent")
	for i := range 20 {
		m := memcached(silent, fmt.Sprintf("m%d", i), `{"spec":{"size":5,"podMetadata":{"annotations":{"`+silentAgent+`":"true"}}}}`)
		repeat(ctx, time.Second, func(i int) { patch(m, `{"spec":{"threads":%d}}`, 1+i%8) })
	}
	storm := namespaceOf(ctx, t, c, "storm")
	repeat(ctx, 20*time.Millisecond, func(i int) {
		_ = c.Create(ctx, backupOf(storm, fmt.Sprintf("b%d", i), "none"))
		_ = c.Delete(ctx, backupOf(storm, fmt.Sprintf("b%d", i-100), "none"))
	})
	large := memcached(namespaceOf(ctx, t, c, "large"), "m", `{"spec":{"size":20}}`)
	repeat(ctx, 100*time.Millisecond, func(i int) {
		patch(large, `{"metadata":{"annotations":{"example.com/large":%q}}}`, strings.Repeat(fmt.Sprint(i%10), 200<<10))
	})
	invalid := namespaceOf(ctx, t, c, "invalid")
	for i := range 10 {
		m := memcached(invalid, fmt.Sprintf("m%d", i), `{"spec":{"version":"1.4.0"}}`)
		repeat(ctx, 50*time.Millisecond, func(i int) { patch(m, `{"spec":{"version":"1.4.%d"}}`, i%10) })
	}
}

// 45 of 50 tenants don't wait for the requests of the other five. How long they wait for an API server on a busy machine
// is only printed.
func TestLostShardsAreReplacedBesideHostileTenants(t *testing.T) {
	// Each of the workers may send some requests until the operator has seen the loss: not all those of a large Memcached.
	const tenants, rounds, maxBefore = 45, 2, 60
	withOperator(t, 20000, func(ctx context.Context, s *scene) {
		fleet, err := newFleet(ctx, s.client, s.admin, tenants, tenants)
		must(t, err)
		must(t, s.startOperator(ctx))
		o := &observer{scene: s, fleet: fleet, began: time.Now()}
		must(t, o.all(ctx, "Available", isAvailable, func(ctx context.Context) error { return fleet.create(ctx, "1.6.45") }))
		figures := func(losses []loss) (replaced time.Duration, before int) {
			noticed, latest := median(losses, func(l loss) time.Duration { return l.noticed })
			replaced, last := median(losses, func(l loss) time.Duration { return l.replaced })
			before, most := median(losses, func(l loss) int { return l.before })
			t.Logf("the operator notices a loss after %s (%s), and %d (%d) other requests; the shard is replaced after %s (%s)", noticed, latest, before, most, replaced, last)
			return replaced, before
		}
		quiet, _ := figures(s.lose(ctx, t, fleet, rounds))
		startTenants(ctx, t, s.client)
		must(t, cluster.Sleep(ctx, 15*time.Second))
		loud, before := figures(s.lose(ctx, t, fleet, rounds))
		t.Logf("beside hostile tenants, it takes %.2f times as long until a lost shard is replaced, with the second in which its pod starts %.2f times",
			loud.Seconds()/quiet.Seconds(), (loud+startDelay).Seconds()/(quiet+startDelay).Seconds())
		if before > maxBefore {
			t.Errorf("the operator sends %d other requests before it replaces a shard, want at most %d", before, maxBefore)
		}
		s.wantPeak(t, "beside hostile tenants")
	})
}
