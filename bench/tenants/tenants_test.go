// Package tenants tests that tenants of a cluster can't use up the operator's memory or delay the shards of others for long. It
// runs the operator's program as its Deployment does, with its memory limit. Nothing enforces the limit here, so the tests compare
// the peak of the operator's memory with it.
package tenants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/bench/internal/scale"
	"github.com/memcached-operator/memcached-operator/test/internal/audit"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
)

// version of memcached, which no pod runs.
const version = "1.6.45"

// scene is a scene with a fleet of small Memcacheds.
type scene struct {
	*scale.Scene
	fleet *scale.Fleet
}

// program is the path of the operator's program.
var program string

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "tenants-")
	if err == nil {
		program, err = scale.Build(context.Background(), dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withOperator calls use with a new API server, for which the operator is installed and not started.
func withOperator(t *testing.T, pods, tenants int, use func(ctx context.Context, s *scene)) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // of the API server and etcd, too
	must(t, scale.With(t.Context(), scale.Options{Dir: dir, Program: program, Size: 1}, func(ctx context.Context, s *scale.Scene) error {
		if err := errors.Join(scale.StartKubelet(ctx, s.Admin, pods), scale.StartReplicaSets(ctx, s.Admin)); err != nil {
			return err
		}
		fleet, err := scale.NewFleet(ctx, s.Client, s.Admin, tenants, tenants)
		if err != nil {
			return err
		}
		if use(ctx, &scene{s, fleet}); t.Failed() {
			return errors.New("failed")
		}
		return nil
	}))
}

// createFleet creates the Memcacheds of the fleet and waits until they are Available.
func (s *scene) createFleet(ctx context.Context, t *testing.T) {
	t.Helper()
	must(t, s.fleet.Create(ctx, version))
	s.eventually(ctx, t, "the fleet", func(context.Context) error {
		if n, isNot := s.fleet.Count(scale.IsAvailable); n < s.fleet.Size {
			return fmt.Errorf("%d of %d are Available, and this isn't: %+v", n, s.fleet.Size, isNot)
		}
		return nil
	})
}

// eventually waits until check returns nil, or the operator has exited.
func (s *scene) eventually(ctx context.Context, t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var exited error
	must(t, cluster.Eventually(ctx, what, func(ctx context.Context) error {
		if exited = s.Operator.Process.Runs(); exited != nil {
			return nil
		}
		return check(ctx)
	}))
	must(t, exited)
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
		group.Go(func() error {
			err := c.Create(ctx, object(i))
			for apierrors.IsTimeout(err) { // the machine is busy, and the object may exist
				err = client.IgnoreAlreadyExists(c.Create(ctx, object(i)))
			}
			return err
		})
	}
	must(t, group.Wait())
}

// wantPeak fails the test if the operator's memory ever was above its limit.
func (s *scene) wantPeak(t *testing.T, when string) {
	t.Helper()
	must(t, s.Operator.Process.Runs())
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Operator.Process.Pid), "status"))
	must(t, err)
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("no peak of the memory in\n%s", status)
	}
	peak, err := strconv.ParseInt(string(match[1]), 10, 64)
	must(t, err)
	t.Logf("%s: peak %d MiB, limit %d MiB", when, peak>>10, s.Operator.Limit>>20)
	if peak<<10 > s.Operator.Limit {
		t.Errorf("%s the operator used %d MiB, and its limit is %d MiB", when, peak>>10, s.Operator.Limit>>20)
	}
}

func namespaceOf(ctx context.Context, t *testing.T, c client.Client, name string) string {
	t.Helper()
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

func backupOf(namespace, name, memcached string) *v1beta1.MemcachedBackup {
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	b.Spec.MemcachedRef.Name = memcached
	b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "backups"}
	return b
}

// A tenant's objects carry 250 MB of annotations, and his Memcacheds 190 MB of specs: more than the operator's memory. Each spec is
// one long string, as the API server takes longer for many short ones.
func TestMemoryStaysWithinTheLimitWithLargeObjectsOfTenants(t *testing.T) {
	withOperator(t, 1000, 1, func(ctx context.Context, s *scene) {
		loud := namespaceOf(ctx, t, s.Client, "loud")
		managed := map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue, v1beta1.LabelInstance: "cache"}
		createAll(ctx, t, s.Client, 850, func(i int) client.Object {
			return &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: loud, Name: fmt.Sprintf("large-%d", i), Labels: managed, Annotations: largeAnnotation},
				Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
			}
		})
		createAll(ctx, t, s.Client, 150, func(i int) client.Object {
			b := backupOf(loud, fmt.Sprintf("large-%d", i), "none")
			b.Annotations = largeAnnotation
			return b
		})
		tolerations := []corev1.Toleration{{Key: strings.Repeat("x", 1250<<10)}}
		createAll(ctx, t, s.Client, 150, func(i int) client.Object {
			m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: loud, Name: fmt.Sprintf("large-%d", i)}}
			m.Spec.Pod.Scheduling.Tolerations = tolerations
			return m
		})
		environment := s.Operator.Environment
		s.Operator.Environment = append(slices.Clone(environment), "KUBE_FEATURE_WatchListClient=false")
		must(t, s.Operator.Start(ctx))
		s.createFleet(ctx, t)
		s.wantPeak(t, "with 1,000 objects of 250 KiB and 150 of 1.2 MiB that were listed")
		s.Operator.Stop()
		s.Operator.Environment = environment
		must(t, s.Operator.Start(ctx))
		s.eventually(ctx, t, "a reconcile", func(ctx context.Context) error {
			if g, err := s.Operator.Metrics.Read(ctx); err != nil || g.Reconciles == 0 {
				return fmt.Errorf("%d reconciles, error %v", g.Reconciles, err) //nolint:errorlint // err may be nil
			}
			return nil
		})
		s.wantPeak(t, "with 1,000 objects of 250 KiB and 150 of 1.2 MiB that were streamed")

		wide := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(ctx, t, s.Client, "large"), Name: "cache", Annotations: largeAnnotation}}
		wide.Spec.Size = new(int32(128))
		wide.Spec.Pod.Metadata.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 100<<10)}
		if err := s.Client.Create(ctx, wide.DeepCopy()); err == nil || !strings.Contains(err.Error(), "8192") {
			t.Errorf("100 KiB of pod annotations: %v", err)
		}
		wide.Spec.Pod.Metadata.Annotations = map[string]string{"example.com/large": strings.Repeat("x", 8192-len("example.com/large"))}
		must(t, s.Client.Create(ctx, wide))
		s.eventually(ctx, t, "128 shards", func(ctx context.Context) error {
			m := &v1beta1.Memcached{}
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(wide), m); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionAvailable) {
				return fmt.Errorf("%d shards are ready", m.Status.ReadyShards)
			}
			return nil
		})
		s.wantPeak(t, "with 128 shards with as many pod annotations as possible too")
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
		if lost.User != scale.AdminUser || lost.Verb != "delete" || !isSet(lost) || lost.Received.Before(since) {
			continue
		}
		l, others, replaced := loss{}, 0, false
		for _, r := range requests[i+1:] {
			switch {
			case r.User != scale.OperatorUser || r.Received.Before(lost.Answered):
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

// lose deletes shard 0 of each Memcached of the fleet, one after the other, and returns what happened.
func (s *scene) lose(ctx context.Context, t *testing.T) (losses []loss) {
	t.Helper()
	since := time.Now()
	for number := range s.fleet.Size {
		lost := &appsv1.ReplicaSet{}
		key := client.ObjectKey{Namespace: s.fleet.NamespaceOf(number), Name: scale.NameOf(number) + "-0"}
		must(t, s.Client.Get(ctx, key, lost))
		must(t, s.Client.Delete(ctx, lost, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		s.eventually(ctx, t, "the replacement of "+key.Name, func(ctx context.Context) error {
			now := &appsv1.ReplicaSet{}
			if err := s.Client.Get(ctx, key, now); err != nil || now.UID != lost.UID {
				return err
			}
			return errors.New("it is the deleted one")
		})
	}
	s.eventually(ctx, t, "the log of the shards' replacement", func(context.Context) error {
		all, err := s.Log.Requests()
		if err != nil {
			return err
		}
		missing := 0
		if losses, missing = lossesOf(all, since); missing > 0 || len(losses) < s.fleet.Size {
			return fmt.Errorf("%d of %d are in it", len(losses), s.fleet.Size)
		}
		return nil
	})
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

// startTenants starts five tenants that do the worst that Memcacheds and backups allow, and returns their namespaces.
func startTenants(ctx context.Context, t *testing.T, c client.Client) []string {
	t.Helper()
	memcacheds := func(name string, n int, spec v1beta1.MemcachedSpec) (string, []*v1beta1.Memcached) {
		namespace, all := namespaceOf(ctx, t, c, name), make([]*v1beta1.Memcached, n)
		createAll(ctx, t, c, n, func(i int) client.Object {
			all[i] = &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("m%d", i)}, Spec: spec}
			return all[i]
		})
		return namespace, all
	}
	patch := func(m *v1beta1.Memcached, patch string, arguments ...any) {
		_ = c.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, patch, arguments...)))
	}
	silent, all := memcacheds("silent", 20, v1beta1.MemcachedSpec{Size: new(int32(5)),
		Pod: v1beta1.MemcachedPod{Metadata: v1beta1.Metadata{Annotations: map[string]string{scale.SilentAgent: "true"}}}})
	for _, m := range all {
		repeat(ctx, time.Second, func(i int) { patch(m, `{"spec":{"threads":%d}}`, 1+i%8) })
	}
	storm := namespaceOf(ctx, t, c, "storm")
	repeat(ctx, 20*time.Millisecond, func(i int) {
		_ = c.Create(ctx, backupOf(storm, fmt.Sprintf("b%d", i), "none"))
		_ = c.Delete(ctx, backupOf(storm, fmt.Sprintf("b%d", i-100), "none"))
	})
	large, all := memcacheds("large", 1, v1beta1.MemcachedSpec{Size: new(int32(20))})
	m := all[0]
	repeat(ctx, 100*time.Millisecond, func(i int) {
		patch(m, `{"metadata":{"annotations":{"example.com/large":%q}}}`, strings.Repeat(fmt.Sprint(i%10), 200<<10))
	})
	invalid, all := memcacheds("invalid", 10, v1beta1.MemcachedSpec{Version: "1.4.0"})
	for _, m := range all {
		repeat(ctx, 50*time.Millisecond, func(i int) { patch(m, `{"spec":{"version":"1.4.%d"}}`, i%10) })
	}
	// The others come before it: until the operator has created its shards, all workers are busy with that.
	flips, all := memcacheds("flips", 50, v1beta1.MemcachedSpec{Size: new(int32(20))})
	for _, m := range all {
		repeat(ctx, 10*time.Second, func(i int) { patch(m, `{"spec":{"size":%d}}`, i%2*20) })
	}
	return []string{flips, silent, storm, large, invalid}
}

// awaitTenants waits until the operator has served each of the hostile tenants for some time.
func (s *scene) awaitTenants(ctx context.Context, t *testing.T, since time.Time, namespaces []string) {
	t.Helper()
	s.eventually(ctx, t, "requests for the hostile tenants", func(context.Context) error {
		all, err := s.Log.Requests()
		if err != nil {
			return err
		}
		requests := map[string]int{}
		for _, r := range scale.RequestsOf(all, scale.OperatorUser, since, time.Now()) {
			requests[r.Namespace]++
		}
		for _, namespace := range namespaces {
			if requests[namespace] < 20 {
				return fmt.Errorf("%v", requests)
			}
		}
		return nil
	})
}

// 9 of 14 tenants get their shards back beside the other five. After how many requests for these, and how long that takes, is printed
// only: both grow with what the machine leaves to the operator, whose tenants don't wait for it.
func TestLostShardsAreReplacedBesideHostileTenants(t *testing.T) {
	withOperator(t, 5000, 9, func(ctx context.Context, s *scene) {
		must(t, s.Operator.Start(ctx))
		s.createFleet(ctx, t)
		figures := func(losses []loss) time.Duration {
			noticed, latest := median(losses, func(l loss) time.Duration { return l.noticed })
			replaced, last := median(losses, func(l loss) time.Duration { return l.replaced })
			before, most := median(losses, func(l loss) int { return l.before })
			t.Logf("the operator notices a loss after %s (%s), and %d (%d) other requests; the shard is replaced after %s (%s)", noticed, latest, before, most, replaced, last)
			return replaced
		}
		quiet := figures(s.lose(ctx, t))
		since := time.Now()
		s.awaitTenants(ctx, t, since, startTenants(ctx, t, s.Client))
		loud := figures(s.lose(ctx, t))
		t.Logf("beside hostile tenants, it takes %.2f times as long until a lost shard is replaced, with the second in which its pod starts %.2f times",
			loud.Seconds()/quiet.Seconds(), (loud+scale.StartDelay).Seconds()/(quiet+scale.StartDelay).Seconds())
		s.wantPeak(t, "beside hostile tenants")
	})
}
