package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/apiserver"
	"github.com/memcached-operator/memcached-operator/internal/index"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// fixture is an Engine on an API server in memory. Its writes are recorded, and may fail.
type fixture struct {
	t *testing.T
	Engine
	live   client.Client // without the recorder of writes
	writes []string
	// fail returns the error of a write, such as "create Job".
	fail func(write string) error
	// rejects returns why the API server rejects a pod.
	rejects  func(*corev1.Pod) error
	recorder *events.FakeRecorder
	uids     int
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	live := fake.NewClientBuilder().WithScheme(simtest.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&v1beta1.MemcachedBackup{}, &v1beta1.MemcachedRestore{}).Build()
	b := &fixture{t: t, live: live, fail: func(string) error { return nil }, rejects: func(*corev1.Pod) error { return nil }, recorder: events.NewFakeRecorder(100)}
	b.Engine = Engine{Client: simtest.Indexed(interceptor.NewClient(live, b.recording())), APIReader: live, Progress: progress{}, Recorder: b.recorder,
		Options: Options{OperatorNamespace: "system"}, Clock: testclock.NewFakePassiveClock(now)}
	return b
}

func (b *fixture) recording() interceptor.Funcs {
	write := func(verb string, o client.Object, do func() error) error {
		words := verb + " " + apiserver.KindOf(o)
		if err := b.fail(words); err != nil {
			return err
		}
		b.writes = append(b.writes, words)
		return do()
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
				return b.rejects(o.(*corev1.Pod))
			}
			return write("create", o, func() error {
				b.uids++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", b.uids)))
				o.SetCreationTimestamp(metav1.NewTime(now))
				err := c.Create(ctx, o, options...)
				if err != nil {
					o.SetUID("")
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			how := (&client.DeleteOptions{}).ApplyOptions(options)
			verb := "delete"
			if how.PropagationPolicy != nil {
				verb += " " + strings.ToLower(string(*how.PropagationPolicy))
			}
			if how.GracePeriodSeconds != nil {
				verb += fmt.Sprintf(" within %ds", *how.GracePeriodSeconds)
			}
			if p := how.Preconditions; p == nil || p.UID == nil || *p.UID != o.GetUID() {
				verb += " any"
			}
			return write(verb, o, func() error { return c.Delete(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return write("patch", o, func() error { return c.Patch(ctx, o, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return write("patch "+sub, o, func() error { return c.SubResource(sub).Patch(ctx, o, patch, options...) })
		},
	}
}

// progress answers for the pods by their IP.
type progress map[string]snapshotwire.Progress

func (p progress) Progress(_ context.Context, podIP string) (snapshotwire.Progress, error) {
	if answer, ok := p[podIP]; ok {
		return answer, nil
	}
	return snapshotwire.Progress{}, errors.New("no route to host")
}

// run reconciles the backup once, and returns its status and what was written.
func (b *fixture) run() (ctrl.Result, v1beta1.TransferStatus, []string, error) {
	b.t.Helper()
	b.writes = nil
	key := client.ObjectKeyFromObject(owner)
	result, err := Reconcile(b.t.Context(), &b.Engine, ctrl.Request{NamespacedName: key}, &v1beta1.MemcachedBackup{}, func(_ context.Context, _ Observer, obs Observation) (stub, error) {
		return stub{Observation: obs}, nil
	})
	var is v1beta1.MemcachedBackup
	if err := b.live.Get(b.t.Context(), key, &is); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return result, is.Status.TransferStatus, b.writes, err
}

func (b *fixture) wantWrites(got []string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("the writes (-want +got):\n%s", diff)
	}
}

// cache is a Memcached that owner's spec names.
func cache() *v1beta1.Memcached {
	return &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache"}}
}

// begun returns owner as a backup of cache in this status.
func begun(s v1beta1.TransferStatus) *v1beta1.MemcachedBackup {
	b := owner.DeepCopy()
	b.Spec.MemcachedRef.Name, b.Status.TransferStatus = "cache", s
	return b
}

var runs = v1beta1.TransferStatus{Phase: v1beta1.TransferRunning, JobName: JobName(Backup, ownerMeta.UID), StartTime: &metav1.Time{Time: now},
	Conditions: []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: v1beta1.ReasonStarting}}}

func TestStatusIsRunningBeforeJobIsCreated(t *testing.T) {
	b := newFixture(t, cache(), begun(v1beta1.TransferStatus{}))
	killed := errors.New("the operator was killed")
	b.fail = func(write string) error {
		if write == "create Job" {
			return killed
		}
		return nil
	}
	_, status, writes, err := b.run()
	b.wantWrites(writes, "patch status MemcachedBackup")
	if err != nil || status.Phase != v1beta1.TransferRunning || status.JobName == "" || !status.StartTime.Time.Equal(now) {
		t.Errorf("%v: the status is %+v", err, status)
	}
	for _, want := range []string{"Normal BackupStarted", "Normal BackupStarted backup nightly: "} { // on the backup and the Memcached
		if got := <-b.recorder.Events; !strings.HasPrefix(got, want) {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	_, _, _, err = b.run()
	if !errors.Is(err, killed) {
		t.Error(err)
	}
	b.fail = func(string) error { return nil }
	_, _, writes, err = b.run()
	b.wantWrites(writes, "create Job", "create NetworkPolicy")
	if err != nil || len(b.recorder.Events) > 0 {
		t.Errorf("%v, and %d events", err, len(b.recorder.Events))
	}
	_, status, writes, _ = b.run()
	b.wantWrites(writes, "patch status MemcachedBackup")
	if status.JobUID != "uid-1" {
		t.Errorf("the status has the Job's UID %q", status.JobUID)
	}
	result, _, writes, _ := b.run()
	b.wantWrites(writes)
	if result.RequeueAfter != progressPoll {
		t.Errorf("it is requeued after %s", result.RequeueAfter)
	}
}

func TestDisabledNetworkPolicyMeansNoneForJobs(t *testing.T) {
	m := cache()
	m.Spec.Access.NetworkPolicy.Mode = v1beta1.NetworkPolicyDisabled
	b := newFixture(t, m, begun(runs))
	_, _, writes, _ := b.run()
	b.wantWrites(writes, "create Job")
}

func TestJobRunsWithoutTheNetworkPolicyThatIsRejected(t *testing.T) {
	b := newFixture(t, cache(), begun(runs))
	b.fail = func(write string) error {
		if write == "create NetworkPolicy" {
			return apierrors.NewForbidden(schema.GroupResource{}, "p", errors.New("no"))
		}
		return nil
	}
	_, status, writes, err := b.run()
	b.wantWrites(writes, "create Job")
	if err != nil || status.Reason() != v1beta1.ReasonStarting {
		t.Errorf("%v: the status is %+v", err, status)
	}
}

func TestNetworkPolicyOfJobAdmitsTheOperatorOnly(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "backup-u", UID: "j", Labels: Labels(Backup, "u")}}
	policy := Options{OperatorNamespace: "memcached-operator-system"}.networkPolicy(job)
	if !metav1.IsControlledBy(policy, job) || policy.Name != job.Name {
		t.Errorf("the policy isn't deleted with the Job: %+v", policy.ObjectMeta)
	}
	rule := networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: job.Labels}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
	without := rule
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(11213)
	rule.Ingress = []networkingv1.NetworkPolicyIngressRule{{
		Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}},
		From: []networkingv1.NetworkPolicyPeer{{
			PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "memcached-operator", "control-plane": "controller-manager"}},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "memcached-operator-system"}},
		}},
	}}
	if diff := cmp.Diff(rule, policy.Spec); diff != "" {
		t.Errorf("the policy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(without, Options{}.networkPolicy(job).Spec); diff != "" {
		t.Errorf("the policy of an operator outside the cluster (-want +got):\n%s", diff)
	}
}

func TestRejectedJobIsReportedAndRetried(t *testing.T) {
	rejections := map[string]struct {
		err     error
		reason  string
		requeue time.Duration
	}{
		"by a quota":                 {apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "j", errors.New("exceeded quota")), v1beta1.ReasonJobCannotStart, apiserver.RejectionRecheck},
		"as invalid":                 {apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", nil), v1beta1.ReasonJobCannotStart, apiserver.RejectionRecheck},
		"by a terminating namespace": {terminating(), v1beta1.ReasonStarting, 0},
	}
	for name, c := range rejections {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, cache(), begun(runs))
			b.fail = func(write string) error {
				if write == "create Job" {
					return c.err
				}
				return nil
			}
			result, status, _, err := b.run()
			if err != nil || result.RequeueAfter != c.requeue || status.Phase != v1beta1.TransferRunning || status.Reason() != c.reason {
				t.Errorf("%v: it is %s (%s): %s, and requeued after %s", err, status.Phase, status.Reason(), status.Message(), result.RequeueAfter)
			}
			if c.reason == v1beta1.ReasonJobCannotStart && !strings.Contains(status.Message(), c.err.Error()) {
				t.Errorf("the message is %q", status.Message())
			}
		})
	}
}

// The Job controller alone would learn that its pod is rejected.
func TestJobHasTheAmountsOfAShardWhereItsOwnAreRejected(t *testing.T) {
	m := cache()
	m.Spec = v1beta1.MemcachedSpec{Memory: new(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{MaxConnections: new(int32(1024))},
		Resources: &v1beta1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}}}
	cpu := func(job *batchv1.Job) string {
		return job.Spec.Template.Spec.Containers[0].Resources.Limits.Cpu().String()
	}
	for name, c := range map[string]struct {
		err func(limits corev1.ResourceList) error
		cpu string
	}{
		"nothing is rejected": {func(corev1.ResourceList) error { return nil }, "0"},
		"a limit is missing": {func(limits corev1.ResourceList) error {
			if limits.Cpu().IsZero() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "j", errors.New("must specify limits.cpu"))
			}
			return nil
		}, "500m"},
		"everything is rejected": {func(corev1.ResourceList) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "j", errors.New("pods=0"))
		}, "500m"},
		"the API server has its own fault": {func(corev1.ResourceList) error { return errors.New("etcd has no leader") }, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, m, begun(runs))
			b.rejects = func(pod *corev1.Pod) error { return c.err(pod.Spec.Containers[0].Resources.Limits) }
			_, status, _, err := b.run()
			var jobs batchv1.JobList
			b.must(err)
			b.must(b.live.List(t.Context(), &jobs))
			if len(jobs.Items) != 1 || cpu(&jobs.Items[0]) != c.cpu {
				t.Fatalf("the status is %+v, the Jobs %+v", status, jobs.Items)
			}
		})
	}
}

// trimmed is the cache of the operator, whose Jobs have no template.
type trimmed struct{ client.Client }

func (c trimmed) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, options...)
	if job, ok := o.(*batchv1.Job); ok {
		job.Spec.Template = corev1.PodTemplateSpec{}
	}
	return err
}

func TestRejectedPodOfAJobIsReported(t *testing.T) {
	s := runs
	s.JobUID = "uid-1"
	b := newFixture(t, cache(), begun(s), ownedJob(func(job *batchv1.Job) {
		job.CreationTimestamp = metav1.NewTime(now)
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: Container}}
	}))
	b.Client = trimmed{b.Client}
	b.rejects = func(pod *corev1.Pod) error {
		if len(pod.Spec.Containers) == 0 {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.GenerateName, nil)
		}
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, pod.GenerateName, errors.New("exceeded quota"))
	}
	_, status, _, err := b.run()
	b.must(err)
	if status.Phase != v1beta1.TransferRunning || status.Reason() != v1beta1.ReasonJobCannotStart || !strings.Contains(status.Message(), "exceeded quota") {
		t.Errorf("it is %s: %s: %s", status.Phase, status.Reason(), status.Message())
	}
}

// terminating returns the rejection of a namespace that is being deleted.
func terminating() error {
	err := apierrors.NewForbidden(schema.GroupResource{}, "j", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// changes makes what the engine reads from its cache out of date.
type changes struct {
	client.Client
	old client.Object
}

func (c changes) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if b, ok := o.(*v1beta1.MemcachedBackup); ok {
		c.old.(*v1beta1.MemcachedBackup).DeepCopyInto(b)
		return nil
	}
	return c.Client.Get(ctx, key, o, options...)
}

func TestStaleBackupIsNeitherWrittenNorStarted(t *testing.T) {
	for name, status := range map[string]v1beta1.TransferStatus{"before it began": {}, "before its Job was seen": runs} {
		for change, edit := range map[string]func(*fixture, *v1beta1.MemcachedBackup){
			"changed": func(b *fixture, is *v1beta1.MemcachedBackup) {
				is.Labels = map[string]string{"team": "search"}
				b.must(b.live.Update(b.t.Context(), is))
			},
			"deleted": func(b *fixture, is *v1beta1.MemcachedBackup) { b.must(b.live.Delete(b.t.Context(), is)) },
			"recreated": func(b *fixture, is *v1beta1.MemcachedBackup) {
				b.must(b.live.Delete(b.t.Context(), is))
				is.UID, is.ResourceVersion = "another", ""
				b.must(b.live.Create(b.t.Context(), is))
			},
		} {
			t.Run(name+", "+change, func(t *testing.T) {
				b := newFixture(t, cache(), begun(status))
				var old v1beta1.MemcachedBackup
				b.must(b.live.Get(t.Context(), client.ObjectKeyFromObject(owner), &old))
				edit(b, old.DeepCopy())
				b.Client = changes{b.Client, &old}
				result, _, _, err := b.run()
				var jobs batchv1.JobList
				b.must(b.live.List(t.Context(), &jobs))
				if err != nil || result.RequeueAfter != apiserver.StaleRequeue || len(jobs.Items) != 0 {
					t.Errorf("%v: it is requeued after %s, with %d Jobs", err, result.RequeueAfter, len(jobs.Items))
				}
			})
		}
	}
}

func (b *fixture) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestFailedRequestIsRetriedWithItsOperation(t *testing.T) {
	busy := errors.New("the server is busy")
	for write, words := range map[string]string{
		"patch status MemcachedBackup": "writing MemcachedBackup nightly",
		"create Job":                   "creating Job",
	} {
		status := v1beta1.TransferStatus{}
		if write == "create Job" {
			status = runs
		}
		b := newFixture(t, cache(), begun(status))
		b.fail = func(w string) error {
			if w == write {
				return busy
			}
			return nil
		}
		if _, _, _, err := b.run(); !errors.Is(err, busy) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: the error is %v", write, err)
		}
	}
	b := newFixture(t, begun(runs))
	b.APIReader = interceptor.NewClient(b.live.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return busy
	}})
	if _, _, _, err := b.run(); !errors.Is(err, busy) || !strings.Contains(err.Error(), "observing: reading Job") {
		t.Errorf("the error is %v", err)
	}
}

func TestJobThatExistsIsNotCreatedAgain(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: JobName(Backup, ownerMeta.UID)}}
	b := newFixture(t, cache(), job.DeepCopy())
	obs := Observation{Object: begun(runs), Now: now}
	b.must(b.live.Create(t.Context(), obs.Object))
	b.must(writer{b.Client}.apply(t.Context(), obs, Actions{Create: job.DeepCopy()}))
	b.wantWrites(b.writes, "create Job") // and no NetworkPolicy, which belongs to what it created
}

// A finished Job expires, and one that isn't needed any more is deleted with its pod first.
func TestActionsOnJobs(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "backup-u", UID: "j"}}
	for name, c := range map[string]struct {
		action Action
		fails  error
		writes []string
		err    bool
	}{
		"none":                      {NoAction, nil, nil, false},
		"deletion":                  {DeleteJob, nil, []string{"delete foreground Job"}, false},
		"deletion of a deleted one": {DeleteJob, apierrors.NewNotFound(schema.GroupResource{}, "j"), nil, false},
		"deletion of another one":   {DeleteJob, apierrors.NewConflict(schema.GroupResource{}, "j", errors.New("another UID")), nil, false},
		"deletion fails":            {DeleteJob, errors.New("busy"), nil, true},
		"expiry":                    {ExpireJob, nil, []string{"patch Job"}, false},
		"expiry of a deleted one":   {ExpireJob, apierrors.NewNotFound(schema.GroupResource{}, "j"), nil, false},
		"expiry of another one":     {ExpireJob, apierrors.NewConflict(schema.GroupResource{}, "j", errors.New("another UID")), nil, false},
		"expiry fails":              {ExpireJob, errors.New("busy"), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, job.DeepCopy())
			b.fail = func(string) error { return c.fails }
			if err := (writer{b.Client}).apply(t.Context(), Observation{Job: JobObservation{Job: job}}, Actions{Job: c.action}); (err != nil) != c.err {
				t.Errorf("the error is %v", err)
			}
			b.wantWrites(b.writes, c.writes...)
			var is batchv1.Job
			if err := b.live.Get(t.Context(), client.ObjectKeyFromObject(job), &is); err == nil && c.action == ExpireJob && c.fails == nil {
				if is.Spec.TTLSecondsAfterFinished == nil || *is.Spec.TTLSecondsAfterFinished != 600 {
					t.Errorf("the Job expires after %v", is.Spec.TTLSecondsAfterFinished)
				}
			}
		})
	}
}

// The Job retries when the pod has terminated. A container beside that of the Job may ignore the signal.
func TestPodThatAnotherContainerKeepsTerminatesSoon(t *testing.T) {
	ended := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "backup-u-1", UID: "p"}}
	b := newFixture(t, ended.DeepCopy())
	b.must(writer{b.Client}.apply(t.Context(), Observation{}, Actions{EndPod: ended}))
	b.wantWrites(b.writes, "delete within 30s Pod")
}

func TestWriteOfFinalizersLeavesStatus(t *testing.T) {
	b := newFixture(t, begun(runs))
	var was v1beta1.MemcachedBackup
	b.must(b.live.Get(t.Context(), client.ObjectKeyFromObject(owner), &was))
	for _, change := range []FinalizerChange{AddFinalizer, RemoveFinalizer, KeepFinalizer} {
		is := was.DeepCopy()
		write := func(o *v1beta1.MemcachedBackup) error {
			obs := Observation{Object: o, Now: now}
			return writer{b.Client}.changeMetadata(t.Context(), obs, Plan{Status: obs.LastStatus(), Actions: Actions{Finalizer: change}})
		}
		b.must(write(is))
		if err := write(was.DeepCopy()); change != KeepFinalizer && !errors.Is(err, apiserver.ErrStale) {
			t.Errorf("a write to what has changed: %v", err)
		}
		was = *is
	}
	b.wantWrites(b.writes, "patch MemcachedBackup", "patch MemcachedBackup", "patch MemcachedBackup", "patch MemcachedBackup")
}

func TestDeletedTransferIsNotReconciled(t *testing.T) {
	b := newFixture(t)
	if result, _, writes, err := b.run(); err != nil || result.RequeueAfter != 0 || len(writes) != 0 {
		t.Errorf("%v, %v, %v", result, writes, err)
	}
}

// Only what has no Job yet can be waiting for another object.
func TestChangesTriggerWaitingTransfers(t *testing.T) {
	named := func(name string, s v1beta1.TransferStatus, memcached string) *v1beta1.MemcachedBackup {
		b := begun(s)
		b.Name, b.Spec.MemcachedRef.Name = name, memcached
		return b
	}
	b := newFixture(t, named("waits", v1beta1.TransferStatus{Phase: v1beta1.TransferPending}, "cache"), named("starts", runs, "cache"),
		named("runs", v1beta1.TransferStatus{Phase: v1beta1.TransferRunning, JobUID: "u"}, "cache"),
		named("failed", v1beta1.TransferStatus{Phase: v1beta1.TransferFailed}, "cache"), named("other", v1beta1.TransferStatus{}, "other"))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	b.EnqueueWaiting(&v1beta1.MemcachedBackupList{}, index.Memcached, client.Object.GetName).
		Update(t.Context(), event.UpdateEvent{ObjectOld: cache(), ObjectNew: cache()}, queue)
	got := map[string]bool{}
	for queue.Len() > 0 {
		request, _ := queue.Get()
		got[request.Name] = true
		queue.Done(request)
	}
	if diff := cmp.Diff(map[string]bool{"waits": true, "starts": true}, got); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

// Progress is written every few seconds, and needs no reconcile.
func TestAnnouncementsTriggerTheNextStep(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1beta1.MemcachedBackup)
		want bool
	}{
		"its spec":       {func(b *v1beta1.MemcachedBackup) { b.Generation++ }, true},
		"its finalizers": {func(b *v1beta1.MemcachedBackup) { b.Finalizers = []string{v1beta1.FinalizerSnapshot} }, true},
		"its phase":      {func(b *v1beta1.MemcachedBackup) { b.Status.Phase = v1beta1.TransferComplete }, true},
		"its reason": {func(b *v1beta1.MemcachedBackup) {
			b.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: v1beta1.ReasonJobCannotStart}}
		}, true},
		"its progress": {func(b *v1beta1.MemcachedBackup) { b.Status.Progress = &v1beta1.TransferProgress{Items: 1} }, false},
		"its message": {func(b *v1beta1.MemcachedBackup) {
			b.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: v1beta1.ReasonStarting, Message: "copying"}}
		}, false},
	} {
		is := begun(runs)
		c.edit(is)
		if got := isAnnounced(event.UpdateEvent{ObjectOld: begun(runs), ObjectNew: is}); got != c.want {
			t.Errorf("a change of %s triggers it: %t", name, got)
		}
	}
}

// ownedJob returns the Job of owner, and its pods, which differ in their age and in when they terminated.
func ownedJob(edit func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: JobName(Backup, ownerMeta.UID), UID: "j", OwnerReferences: []metav1.OwnerReference{OwnerReference(owner)}}}
	if edit != nil {
		edit(job)
	}
	return job
}

func podOf(job *batchv1.Job, name string, age time.Duration, phase corev1.PodPhase, state corev1.ContainerState) *corev1.Pod {
	p := pod(age, phase, state, func(p *corev1.Pod) {
		p.Namespace, p.Name, p.Status.PodIP = "team", name, "10.0.0.1"
		p.Labels = map[string]string{batchv1.JobNameLabel: job.Name, v1beta1.LabelInstance: job.Name}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	})
	return &p
}

// lacks is a cache without the objects and lists of some types.
type lacks struct {
	client.Client
	types []any
}

func (c lacks) has(o any) bool {
	for _, t := range c.types {
		if fmt.Sprintf("%T", t) == fmt.Sprintf("%T", o) {
			return false
		}
	}
	return true
}

func (c lacks) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if !c.has(o) {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	return c.Client.Get(ctx, key, o, options...)
}

func (c lacks) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !c.has(list) {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

func TestObservationOfJob(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	job := ownedJob(nil)
	complete := ownedJob(finished(batchv1.JobComplete, ""))
	succeeded := podOf(job, "b", 0, corev1.PodSucceeded, terminatedState(0, "Completed", `{"reason":"Succeeded"}`))
	foreign := job.DeepCopy()
	foreign.OwnerReferences = nil
	strangers := podOf(job, "z", 0, corev1.PodRunning, running)
	strangers.OwnerReferences[0].UID = "another"
	earlier := podOf(job, "c", time.Minute, corev1.PodFailed, terminatedState(1, "Error", ""))
	first := podOf(job, "a", 0, corev1.PodFailed, terminatedState(1, "Error", ""))
	first.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(now)
	second := podOf(job, "0", 0, corev1.PodFailed, terminatedState(1, "Error", ""))
	second.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(now.Add(time.Second))
	runningPod := podOf(job, "b", 0, corev1.PodRunning, running)
	answers := progress{"10.0.0.1": {TaskID: string(ownerMeta.UID), Items: 50, TotalItems: -1}}
	for name, c := range map[string]struct {
		objects  []client.Object
		lacks    []any
		expected bool
		progress progress
		want     string
	}{
		"there is none":                         {nil, nil, true, nil, "absent"},
		"it has another owner":                  {[]client.Object{foreign}, nil, true, nil, "foreign"},
		"none is expected":                      {[]client.Object{job, runningPod}, nil, false, answers, "exists"},
		"none is expected, nor in the cache":    {[]client.Object{job}, []any{job}, false, nil, "absent"},
		"the cache lacks it":                    {[]client.Object{job, runningPod}, []any{job}, true, nil, "exists b"},
		"the newest pod is first":               {[]client.Object{job, earlier, first, second}, nil, true, nil, "exists 0 a c"},
		"a pod that runs is the newest":         {[]client.Object{job, second, runningPod}, nil, true, nil, "exists b 0"},
		"a pod of another owner":                {[]client.Object{job, strangers}, nil, true, nil, "exists"},
		"its pod reports progress":              {[]client.Object{job, runningPod}, nil, true, answers, "exists b, 50 of 0 items"},
		"its pod reports another task's":        {[]client.Object{job, runningPod}, nil, true, progress{"10.0.0.1": {TaskID: "another"}}, "exists b"},
		"its pod has terminated":                {[]client.Object{job, first}, nil, true, answers, "exists a"},
		"it is complete":                        {[]client.Object{complete, succeeded}, nil, true, answers, "exists b"},
		"it is complete, the cache lacks a pod": {[]client.Object{complete, succeeded}, []any{&corev1.PodList{}}, true, nil, "exists b"},
		"it runs, and the cache lacks its pod":  {[]client.Object{job, runningPod}, []any{&corev1.PodList{}}, true, answers, "exists"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, c.objects...)
			b.Client, b.Progress = lacks{b.Client, c.lacks}, c.progress
			obs, err := b.observer().ObserveJob(t.Context(), Backup, owner, c.expected, now)
			if err != nil {
				t.Fatal(err)
			}
			got := "absent"
			switch {
			case obs.Foreign:
				got = "foreign"
			case obs.Job != nil:
				got = "exists"
			}
			for _, pod := range obs.Pods {
				got += " " + pod.Name
			}
			if p := obs.Progress; p != nil {
				got += fmt.Sprintf(", %d of %d items", p.Items, p.TotalItems)
			}
			if got != c.want || obs.Name != job.Name {
				t.Errorf("Job %s %q, want %q", obs.Name, got, c.want)
			}
		})
	}
}

// A new Memcached may not be in the cache yet.
func TestObservationFindsMemcached(t *testing.T) {
	for name, c := range map[string]struct {
		phase  v1beta1.TransferPhase
		exists bool
		cached bool
		want   bool
	}{
		"in the cache":                      {"", true, true, true},
		"not in the cache yet":              {v1beta1.TransferPending, true, false, true},
		"nowhere":                           {v1beta1.TransferRunning, false, true, false},
		"the transfer has finished":         {v1beta1.TransferComplete, true, true, true},
		"it has finished, not in the cache": {v1beta1.TransferFailed, true, false, false},
	} {
		var objects []client.Object
		if c.exists {
			objects = append(objects, cache())
		}
		b := newFixture(t, objects...)
		if !c.cached {
			b.Client = lacks{b.Client, []any{cache()}}
		}
		obs, err := b.observer().observe(t.Context(), begun(v1beta1.TransferStatus{Phase: c.phase}), Options{})
		if err != nil || (obs.Memcached != nil) != c.want || !obs.Now.Equal(now) {
			t.Errorf("%s: %v, the Memcached is %v", name, err, obs.Memcached)
		}
	}
}
