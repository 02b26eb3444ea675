package memcached

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
)

func TestWhoseAnObjectIs(t *testing.T) {
	controlledBy := func(group, kind, name string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: group, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
	}
	ourGroup := v1alpha1.GroupVersion.String()
	for _, c := range []struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   ownership
	}{
		{"its controller is this Memcached", nil, controlledBy(ourGroup, "Memcached", "cache", "uid"), ours},
		{"its controller is another Memcached of this name", nil, controlledBy(ourGroup, "Memcached", "cache", "before"), predecessors},
		{"its controller is a Memcached of another name", nil, controlledBy(ourGroup, "Memcached", "sessions", "other"), foreign},
		{"its controller is a Memcached of another API", nil, controlledBy("example.com/v1", "Memcached", "cache", "other"), foreign},
		{"its controller is something else, whatever its labels", manifests.Labels("cache"), controlledBy("apps/v1", "Deployment", "cache", "other"), foreign},
		{"nobody controls it, and it was made for this name", manifests.Labels("cache"), nil, orphaned},
		{"nobody controls it, and it was made for another name", manifests.Labels("sessions"), nil, foreign},
		{"nobody controls it, and somebody else made it", map[string]string{v1alpha1.LabelInstance: "cache", v1alpha1.LabelManagedBy: "Helm"}, nil, foreign},
		{"nobody controls it, and nothing tells who made it", nil, nil, foreign},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &v1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", UID: "uid"}}
			o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache-0", Labels: c.labels, OwnerReferences: c.owners}}
			if got := ownershipOf(m, o); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// Between the look and the delete somebody may put another object there.
func TestAnObjectThatAnotherTookTheNameOfIsNotEnded(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	w.settle("cache")
	w.change("cache", func(m *v1alpha1.Memcached) { m.Spec.Size = ptr.To[int32](1) })
	seen, err := w.reconciler.observe(w.ctx, w.get("cache"))
	w.must(err)
	p := makePlan(seen, w.reconciler.Options)
	var set appsv1.ReplicaSet
	w.read("cache-1", &set)
	w.must(admin.Delete(w.ctx, &set))
	other := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "cache-1", Labels: set.Labels}, Spec: set.Spec}
	w.must(admin.Create(w.ctx, other))

	if a := w.reconciler.apply(w.ctx, p); !a.outrun || a.retry() != nil || len(a.refusals) > 0 {
		t.Errorf("it came to %+v", a)
	}
	w.read("cache-1", &set)
	if set.UID != other.UID || set.DeletionTimestamp != nil {
		t.Error("what somebody else put there was ended")
	}
	if w.exists("cache-1", &corev1.Service{}) {
		t.Error("the Service, which is as it was seen, stays")
	}
}

// Somebody may end an object of ours, and a finalizer of theirs keeps it for a while.
func TestAnObjectThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	var service corev1.Service
	w.read("cache-0", &service)
	controllerutil.AddFinalizer(&service, "example.com/waits")
	service.Spec.PublishNotReadyAddresses = true // which would be mended
	w.must(admin.Update(w.ctx, &service))
	w.must(admin.Delete(w.ctx, &service))
	w.read("cache-0", &service)

	m := w.settle("cache")
	w.wantCondition(m, v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonWaitingForOwner, "Service cache-0")
	var after corev1.Service
	w.read("cache-0", &after)
	if after.ResourceVersion != service.ResourceVersion {
		t.Error("it was written")
	}
	controllerutil.RemoveFinalizer(&after, "example.com/waits")
	w.must(admin.Update(w.ctx, &after))
	w.settle("cache")
	w.read("cache-0", &after)
	if after.UID == service.UID {
		t.Error("it was not made again")
	}
}

func TestAPatchThatAnotherOutranIsLookedAtAnew(t *testing.T) {
	w := newWorld(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "changed"}}
	pod.Spec.Containers = []corev1.Container{{Name: "memcached", Image: "memcached"}}
	w.must(admin.Create(w.ctx, pod))
	seen := pod.DeepCopy()
	pod.Annotations = map[string]string{"somebody": "was here"}
	w.must(admin.Update(w.ctx, pod))

	if a := w.reconciler.apply(w.ctx, plan{patches: []podPatch{annotate(seen, "stop", "now")}}); !a.outrun || a.retry() != nil || len(a.refusals) > 0 {
		t.Errorf("it came to %+v", a)
	}
	w.read("changed", pod)
	if pod.Annotations["stop"] != "" {
		t.Error("a pod was changed that is not what was seen")
	}
	if a := w.reconciler.apply(w.ctx, plan{patches: []podPatch{annotate(pod, "stop", "now")}}); a.outrun || a.retry() != nil || len(a.refusals) > 0 {
		t.Errorf("it came to %+v", a)
	}
	if w.read("changed", pod); pod.Annotations["stop"] != "now" {
		t.Error("a pod that is as it was seen was not changed")
	}

	// Another pod of the same name is another one, also when it is as old.
	w.must(admin.Delete(w.ctx, pod, client.GracePeriodSeconds(0)))
	if a := w.reconciler.apply(w.ctx, plan{patches: []podPatch{annotate(pod, "stop", "later")}}); a.retry() != nil || len(a.refusals) > 0 {
		t.Errorf("a pod that is gone: %+v", a)
	}
}

// A shard that goes serves until its Service is gone; who reads the status is not to
// begin to use it.
func TestShardsBeyondTheSizeAreNotOfIt(t *testing.T) {
	seen := smallWorld(1, "good", [2]string{"ours", "ours"}, [2]string{"ours", "ours"}, [2]string{"starting", "ready"})
	s := makeStatus(seen, planOf(seen), applied{}, seen.now)
	if s.ReadySize != 0 || s.Ready != "0/1" {
		t.Errorf("%d shards are ready, %s", s.ReadySize, s.Ready)
	}
	if want := manifests.Server("default", "cache-0"); len(s.Servers) != 1 || s.Servers[0] != want {
		t.Errorf("servers %q, want %s alone", s.Servers, want)
	}
	if len(s.Shards) != 2 {
		t.Errorf("the status tells of %d shards, and there are 2", len(s.Shards))
	}
}

func TestTheFinalizerIsNotGivenToAMemcachedThatGoes(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		seen := smallWorld(1, "good", [2]string{"ours", "absent"}, [2]string{"ours", "absent"}, [2]string{"ready", "none"})
		seen.memcached.Spec.DeletionPolicy = v1alpha1.DeletionBackup
		if deleted { // others may hold it
			seen.memcached.DeletionTimestamp = &metav1.Time{Time: seen.now}
		}
		if p := planOf(seen); p.deletion.hold == deleted || p.deletion.letGo {
			t.Errorf("deleted: %v; held: %v, let go: %v", deleted, p.deletion.hold, p.deletion.letGo)
		}
	}
}

// The cache does not hold it, so that no watch tells when the name is free.
func TestANameThatSomebodyHoldsIsLookedUpAgain(t *testing.T) {
	for state, want := range map[string]time.Duration{"ours": 0, "foreign": lookAgain} {
		seen := smallWorld(1, "good", [2]string{"ours", "absent"}, [2]string{state, "absent"}, [2]string{"none", "none"})
		if p := planOf(seen); p.requeueAfter != want {
			t.Errorf("a Service that is %s: it is looked at again after %s, want %s", state, p.requeueAfter, want)
		}
	}
}
