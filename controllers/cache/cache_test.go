package cache

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
)

// The tests of controllers/memcached and the simulation read through the transforms of this cache.

// Reading a kind by mistake must not cache all Secrets of the cluster either.
func TestOnlyTheOperatorsObjectsAreCached(t *testing.T) {
	options := Options()
	if !options.ReaderFailOnMissingInformer {
		t.Error("reading a Secret would cache all Secrets of the cluster")
	}
	if len(options.ByObject) != 5 {
		t.Errorf("%d kinds are cached by their label", len(options.ByObject))
	}
	for kind, by := range options.ByObject {
		if by.Label == nil || by.Label.String() != v1beta1.LabelManagedBy+"="+v1beta1.ManagedByValue {
			t.Errorf("%T: label selector %v", kind, by.Label)
		}
	}
}

func TestTombstoneIsStoredUnchanged(t *testing.T) {
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	if o, err := Transform(tombstone); err != nil || o != tombstone {
		t.Errorf("got %v, %v", o, err)
	}
}

// The operator decides by which fields it owns, and by why a ReplicaSet has no pod.
func TestTransformKeepsWhatTheOperatorReads(t *testing.T) {
	entry := func(manager, subresource string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: operation, FieldsV1: metav1.NewFieldsV1("{}")}
	}
	operator := v1beta1.ManagedByValue
	applied := entry(operator, "", metav1.ManagedFieldsOperationApply)
	resized := entry(operator, "resize", metav1.ManagedFieldsOperationUpdate)
	entries := []metav1.ManagedFieldsEntry{
		applied, resized,
		entry(operator, "", metav1.ManagedFieldsOperationUpdate),
		entry(operator, "status", metav1.ManagedFieldsOperationApply),
		entry("kubectl", "", metav1.ManagedFieldsOperationApply),
		entry("vpa-updater", "resize", metav1.ManagedFieldsOperationUpdate),
	}
	for name, c := range map[string]struct {
		object client.Object
		want   []metav1.ManagedFieldsEntry
	}{
		"ReplicaSet": {&appsv1.ReplicaSet{}, []metav1.ManagedFieldsEntry{applied}},
		"Service":    {&corev1.Service{}, []metav1.ManagedFieldsEntry{applied}},
		"pod":        {&corev1.Pod{}, []metav1.ManagedFieldsEntry{resized}},
		"Memcached":  {&v1beta1.Memcached{}, []metav1.ManagedFieldsEntry{entry("", "scale", "")}}, // no manager owns the size
	} {
		c.object.SetManagedFields(slices.Clone(entries))
		c.object.SetOwnerReferences(controlledBy("apps/v1", "ReplicaSet"))
		if _, err := Transform(c.object); err != nil {
			t.Fatal(err)
		}
		same := func(a, b metav1.ManagedFieldsEntry) bool {
			return a.Manager == b.Manager && a.Subresource == b.Subresource && a.Operation == b.Operation
		}
		if got := c.object.GetManagedFields(); !slices.EqualFunc(got, c.want, same) {
			t.Errorf("%s: managed fields %+v, want %+v", name, got, c.want)
		}
	}
	set := &appsv1.ReplicaSet{Status: appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 1, Conditions: []appsv1.ReplicaSetCondition{{Message: "exceeded quota"}}}}
	if trim(set); set.Status.Replicas != 1 || set.Status.ReadyReplicas != 0 || len(set.Status.Conditions) != 1 {
		t.Errorf("status %+v", set.Status)
	}
	job := &batchv1.Job{Spec: batchv1.JobSpec{Suspend: ptr.To(true)}}
	job.Spec.Template.Labels = map[string]string{"a": "b"}
	if trim(job); job.Spec.Template.Labels != nil || job.Spec.Suspend == nil {
		t.Errorf("the Job is %+v", job.Spec)
	}
	pod := &corev1.Pod{}
	shardtest.MountKey(pod, "cache-handover-12345678")
	if trim(pod); len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].Secret.SecretName != "cache-handover-12345678" || pod.Spec.Volumes[0].Secret.Items != nil {
		t.Errorf("volumes %+v", pod.Spec.Volumes)
	}
}

func TestCacheContainsTheFirstAddressOfALoadBalancer(t *testing.T) {
	service := &corev1.Service{}
	service.OwnerReferences = controlledBy(v1beta1.GroupVersion.String(), "Memcached")
	service.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
		{IP: "192.0.2.1", Hostname: "balancer.example.com", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP), Ports: []corev1.PortStatus{{Port: 11211}}}, {IP: "192.0.2.2"},
	}
	want := corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1", Hostname: "balancer.example.com"}}}}
	if got := store(t, service).Status; !reflect.DeepEqual(got, want) {
		t.Errorf("stored as %+v", got)
	}
}

// Namespaces have budgets of others, of which the operator reads only which pods they select.
func TestCacheContainsTheSelectorsOfBudgets(t *testing.T) {
	theirs := map[string]string{v1beta1.LabelInstance: "cache", v1beta1.LabelManagedBy: "Helm", "example.com/theirs": "x"}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "release", Labels: theirs, Annotations: map[string]string{"example.com/theirs": "x"}},
		Spec:   policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1}}
	want := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "release"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}}}
	if diff := cmp.Diff(want, *store(t, budget)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// controlledBy returns the owner references of an object with a controller, and with another owner.
func controlledBy(version, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other"}, {APIVersion: version, Kind: kind, Name: "cache", UID: "1", Controller: ptr.To(true)}}
}

var managed = map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue, v1beta1.LabelInstance: "cache"}

// store returns an object as the cache stores it. The reflector may transform it twice.
func store[T client.Object](t *testing.T, o T) T {
	t.Helper()
	for range 2 {
		if _, err := Transform(o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// A tenant chooses what is in these objects, and may set the operator's label, field manager and owner.
func TestCacheContainsOnlyTheIdentityOfLargeObjects(t *testing.T) {
	large := map[string]string{"example.com/large": strings.Repeat("x", 250<<10)}
	metadata := func(owners []metav1.OwnerReference) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "team", Name: "cache-0", UID: "2", ResourceVersion: "3", Labels: maps.Clone(managed), Annotations: maps.Clone(large), OwnerReferences: owners, Finalizers: []string{"example.com/keep"}}
		for i := range 1000 {
			m.Labels[fmt.Sprintf("example.com/%d", i)] = "x"
		}
		return m
	}
	forged := metadata(controlledBy(v1beta1.GroupVersion.String(), "Memcached"))
	forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1beta1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:example.com/large":{}}`)}}
	container := corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached", Args: []string{large["example.com/large"]}}}}
	for name, o := range map[string]client.Object{
		"a Service with large annotations": &corev1.Service{ObjectMeta: metadata(nil), Spec: corev1.ServiceSpec{ClusterIP: "None"}},
		"a large Service with our manager": &corev1.Service{ObjectMeta: forged, Spec: corev1.ServiceSpec{ExternalName: large["example.com/large"]}},
		"a ReplicaSet":                     &appsv1.ReplicaSet{ObjectMeta: metadata(nil), Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: container}}},
		"a Job":                            &batchv1.Job{ObjectMeta: metadata(nil), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: container}}},
	} {
		controller := metav1.GetControllerOf(o)
		got := store(t, o)
		if size := got.(interface{ Size() int }).Size(); size > 400 {
			t.Errorf("%s: %d bytes are stored", name, size)
		}
		if got.GetUID() != "2" || got.GetResourceVersion() != "3" || got.GetName() != "cache-0" || !maps.Equal(got.GetLabels(), managed) || !reflect.DeepEqual(metav1.GetControllerOf(got), controller) {
			t.Errorf("%s: stored as %+v", name, got)
		}
	}
}

// Users choose the size of a custom resource, too, up to 1.5 MiB.
func TestCacheReducesMemcachedsThatAreTooLarge(t *testing.T) {
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}, Spec: v1beta1.MemcachedSpec{Size: ptr.To[int32](3), Version: "1.6.45"}}
	m.Spec.Access.ServiceMetadata.Labels = map[string]string{"team": "a"}
	if store(t, m); resources.IsReduced(m) || len(m.Spec.Access.ServiceMetadata.Labels) != 1 {
		t.Errorf("a small one is stored as %+v", m)
	}
	m.Spec.Access.ServiceMetadata.Annotations = map[string]string{"example.com/large": strings.Repeat("x", resources.MaxSpec)}
	if store(t, m); !resources.IsReduced(m) || m.Spec.Version != "1.6.45" || *m.Spec.Size != 3 || !reflect.DeepEqual(m.Spec.Access.ServiceMetadata, v1beta1.Metadata{}) {
		t.Errorf("a large one is stored as %+v", m)
	}
}

// No write of the list may remove one of them.
func TestFinalizersThatAreTooLargeAreStoredAsAnInvalidOne(t *testing.T) {
	backup := &v1beta1.MemcachedBackup{}
	for i := range 100 {
		backup.Finalizers = append(backup.Finalizers, fmt.Sprintf("example.com/%060d", i))
	}
	store(t, backup)
	if len(backup.Finalizers) != 1 || len(validation.IsQualifiedName(backup.Finalizers[0])) == 0 {
		t.Errorf("stored as %q", backup.Finalizers)
	}
	if len(validation.IsQualifiedName(resources.ReducedSpec)) == 0 {
		t.Error("users can set the annotation of a reduced spec")
	}
}

func TestCacheOmitsUnreadAnnotationsAndLabels(t *testing.T) {
	const ours, theirs = v1beta1.AnnotationRetry, "example.com/theirs"
	metadata := func(values ...string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Finalizers: []string{"example.com/keep"}, Labels: map[string]string{v1beta1.LabelSchedule: "nightly", theirs: "x"}, Annotations: map[string]string{theirs: "x"},
			OwnerReferences: controlledBy(v1beta1.GroupVersion.String(), "Memcached")}
		for _, name := range values {
			m.Annotations[name] = "x"
		}
		return m
	}
	for name, c := range map[string]struct {
		object      client.Object
		annotations []string
		finalizers  int
	}{
		"Memcached":                {&v1beta1.Memcached{ObjectMeta: metadata(ours)}, []string{ours}, 1},
		"MemcachedBackup":          {&v1beta1.MemcachedBackup{ObjectMeta: metadata(ours, annotations.Transfer)}, []string{annotations.Transfer}, 1},
		"MemcachedRestore":         {&v1beta1.MemcachedRestore{ObjectMeta: metadata(annotations.Refills, annotations.Transfer)}, []string{annotations.Refills, annotations.Transfer}, 1},
		"MemcachedScheduledBackup": {&v1beta1.MemcachedScheduledBackup{ObjectMeta: metadata()}, nil, 1},
		"Job":                      {&batchv1.Job{ObjectMeta: metadata(annotations.TransferOf)}, []string{annotations.TransferOf}, 0},
		"Service":                  {&corev1.Service{ObjectMeta: metadata(ours, annotations.Update)}, nil, 0},
		"ReplicaSet":               {&appsv1.ReplicaSet{ObjectMeta: metadata(ours, annotations.Update)}, []string{annotations.Update}, 0},
	} {
		o := store(t, c.object)
		if got := slices.Sorted(maps.Keys(o.GetAnnotations())); !slices.Equal(got, c.annotations) {
			t.Errorf("%s: annotations %q, want %q", name, got, c.annotations)
		}
		if got := slices.Collect(maps.Keys(o.GetLabels())); !slices.Equal(got, []string{v1beta1.LabelSchedule}) {
			t.Errorf("%s: labels %q", name, got)
		}
		if len(o.GetFinalizers()) != c.finalizers { // of a custom resource, they are written back
			t.Errorf("%s: finalizers %q", name, o.GetFinalizers())
		}
	}
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ours: strings.Repeat("x", 250<<10)}}}
	if got := store(t, m).Annotations[ours]; len(got) != 64 {
		t.Errorf("a long annotation is stored with %d bytes", len(got))
	}
	const record = resources.MaxRevision + 8<<10 // with a basis of as many annotations as a pod can have
	for size, want := range map[int]int{record: record, record + 1: 64} {
		b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotations.Transfer: strings.Repeat("x", size)}}}
		if got := store(t, b).Annotations[annotations.Transfer]; len(got) != want {
			t.Errorf("a record of %d bytes is stored with %d", size, len(got))
		}
	}
}

func TestCacheContainsTheOperatorsPods(t *testing.T) {
	for _, owners := range [][]metav1.OwnerReference{controlledBy("apps/v1", "ReplicaSet"), controlledBy("batch/v1", "Job"), controlledBy(v1beta1.GroupVersion.String(), "Memcached")} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners, Annotations: map[string]string{annotations.Update: "{}"}}, Spec: corev1.PodSpec{NodeName: "node1",
			Tolerations: []corev1.Toleration{{Key: "cache"}}, PriorityClassName: "high", TerminationGracePeriodSeconds: new(int64(93)), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}}
		shardtest.MountTLS(pod, "own")
		want := pod.DeepCopy()
		if got := store(t, pod); !reflect.DeepEqual(got.Spec, want.Spec) || got.Annotations[annotations.Update] != "{}" {
			t.Errorf("a pod of a %s is stored as %+v with the annotations %v", owners[1].Kind, got.Spec, got.Annotations)
		}
	}
}

// The operator compares what it applied, with the values that the user chose.
func TestCacheContainsWhatTheOperatorApplied(t *testing.T) {
	set := &appsv1.ReplicaSet{}
	set.OwnerReferences = controlledBy(v1beta1.GroupVersion.String(), "Memcached")
	set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1beta1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply,
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{"f:example.com/team":{}},"f:labels":{"f:team":{}}}}}}`)}}
	set.Spec.Template.Annotations = map[string]string{"example.com/team": "shop", "example.com/other": "x"}
	set.Spec.Template.Labels = map[string]string{"team": "shop", "other": "x"}
	store(t, set)
	if a, l := set.Spec.Template.Annotations, set.Spec.Template.Labels; len(a) != 1 || a["example.com/team"] != "shop" || len(l) != 1 || l["team"] != "shop" {
		t.Errorf("annotations %q, labels %q", a, l)
	}
}

func TestEqualPartsOfPodsShareMemory(t *testing.T) {
	specOf := func(limit string) *corev1.PodSpec {
		set := &appsv1.ReplicaSet{}
		set.OwnerReferences = controlledBy(v1beta1.GroupVersion.String(), "Memcached")
		set.Labels = map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue}
		set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1beta1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{}`)}}
		set.Spec.Template.Spec = corev1.PodSpec{
			Containers: []corev1.Container{{Name: "memcached", LivenessProbe: &corev1.Probe{PeriodSeconds: 10}, Ports: []corev1.ContainerPort{{Name: "memcached"}},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}}},
		}
		return &store(t, set).Spec.Template.Spec
	}
	first, second, other := specOf("64Mi"), specOf("64Mi"), specOf("128Mi")
	a, b := first.Containers[0], second.Containers[0]
	if a.LivenessProbe != b.LivenessProbe || &a.Ports[0] != &b.Ports[0] || first.Volumes[0].EmptyDir != second.Volumes[0].EmptyDir ||
		reflect.ValueOf(a.Resources.Limits).Pointer() != reflect.ValueOf(b.Resources.Limits).Pointer() {
		t.Error("equal parts have their own memory")
	}
	if got := other.Containers[0].Resources.Limits.Memory().String(); got != "128Mi" || a.Resources.Limits.Memory().String() != "64Mi" {
		t.Errorf("the limit is %s instead of 128Mi", got)
	}
}

// The largest pod configuration and the largest list of shards make no object that is stored without its content.
// Each informer transforms its objects on a goroutine of its own. The race tier runs this test.
func TestSharedPartsOfPodsAreOnlyRead(t *testing.T) {
	for i := range 100 {
		var informers sync.WaitGroup
		for range 2 {
			informers.Go(func() {
				limit := resource.NewQuantity(int64(i+1), resource.BinarySI)
				volume := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: limit}}}
				if _, err := Transform(&appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{volume}}}}}); err != nil {
					t.Error(err)
				}
			})
		}
		informers.Wait()
	}
}

func TestLargestReplicaSetIsStored(t *testing.T) {
	spec := v1beta1.MemcachedSpec{Size: ptr.To[int32](1), Memory: ptr.To(resource.MustParse("64Mi")), Config: v1beta1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("1Mi")), MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4)}}
	spec.Pod.Metadata.Annotations, spec.Pod.Metadata.Labels = map[string]string{}, map[string]string{}
	for i := range 32 {
		spec.Pod.Metadata.Annotations[fmt.Sprintf("%s/%d", strings.Repeat("a", 200), i)] = strings.Repeat("x", 50)
		spec.Pod.Metadata.Labels[fmt.Sprintf("%s/%d", strings.Repeat("a", 100), i)] = "x"
	}
	image := resources.Image{Reference: "memcached:1.6.45"}
	for len(resources.NewPodRevision(&spec, image).String()) < resources.MaxRevision {
		spec.Pod.Scheduling.Tolerations = append(spec.Pod.Scheduling.Tolerations, corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists})
	}
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache", UID: "1"}, Spec: spec}
	build := resources.NewBuilder(m, resources.Options{AgentImage: "operator:1"})
	desired := build.Desired([]resources.Shard{{Revision: resources.NewPodRevision(&spec, image)}})
	raw, err := json.Marshal(build.Build(desired[len(desired)-1]).Apply)
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.ReplicaSet
	if err := json.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	// The set of the fields has each of their names, and little else.
	set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1beta1.ManagedByValue, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(raw))}}
	set.Spec.Template.Annotations[annotations.Discovery] = strings.Repeat("x", resources.MaxDiscoveryList)
	if size := set.Size(); size > maxSize {
		t.Errorf("it has %d bytes, of which the cache stores %d", size, maxSize)
	}
}

func TestInternedValuesAreSharedAndBounded(t *testing.T) {
	first := metav1.NewFieldsV1(`{"f:spec":{}}`)
	if intern(first.GetRawString(), first) != first || intern(first.GetRawString(), metav1.NewFieldsV1(`{"f:spec":{}}`)) != first {
		t.Error("equal sets are stored twice")
	}
	if other := metav1.NewFieldsV1(`{"f:status":{}}`); intern(other.GetRawString(), other) != other {
		t.Error("a set was replaced by another one")
	}
	interned.values, interned.size = nil, 0
	most := 0
	for i := range 100 {
		text := fmt.Sprintf("%0*d", maxShared, i)
		intern(text, i)
		intern(text+"x", i) // too long
		most = max(most, len(interned.values))
	}
	if want := maxInterned / maxShared; most != want {
		t.Errorf("up to %d values are kept, want %d", most, want)
	}
}
