package memcached

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

func TestTheTableHasEveryFieldOfTheSpecAndNoOther(t *testing.T) {
	var want, have []string
	for f := range reflect.TypeFor[v1alpha1.MemcachedSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" {
			want = append(want, name)
		}
	}
	for _, f := range fields {
		if have = append(have, f.name); f.how == "" {
			t.Errorf("nothing is said about %s", f.name)
		}
		if f.may != rollout.Nothing && f.may <= f.class {
			t.Errorf("%s may need less than it needs", f.name)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Errorf("the spec has %v, the table %v", want, have)
	}
	for _, name := range argumentFields {
		if !slices.Contains(have, name) {
			t.Errorf("%s is no field", name)
		}
	}
}

type edit func(*v1alpha1.MemcachedSpec)

// askedBy returns what is asked of a pod by a spec with the CRD's defaults and some
// edits.
func askedBy(t *testing.T, edits ...edit) manifests.Asked {
	t.Helper()
	spec := v1alpha1.MemcachedSpec{
		Size: ptr.To[int32](3), Memory: ptr.To(resource.MustParse("64Mi")), MaxItemSize: ptr.To(resource.MustParse("1Mi")),
		Connections: ptr.To[int32](1024), Threads: ptr.To[int32](4),
	}
	for _, e := range edits {
		if e != nil {
			e(&spec)
		}
	}
	image, err := manifests.ResolveImage(spec.Image, spec.Version, "docker.io/library/memcached:1.6.45")
	if err != nil {
		t.Fatal(err)
	}
	return manifests.Ask(&spec, image)
}

func extraArgs(words ...string) edit {
	return func(s *v1alpha1.MemcachedSpec) { s.ExtraArgs = words }
}

func version(v string) edit { return func(s *v1alpha1.MemcachedSpec) { s.Version = v } }

func image(i string) edit { return func(s *v1alpha1.MemcachedSpec) { s.Image = i } }

func memory(quantity string) edit {
	return func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse(quantity)) }
}

func connections(n int32) edit {
	return func(s *v1alpha1.MemcachedSpec) { s.Connections = &n }
}

// resources are written as "cpu 1 memory 1Gi | cpu 2 memory 1Gi": requests and limits.
func resources(text string) edit {
	requests, limits, _ := strings.Cut(text, "|")
	list := func(text string) corev1.ResourceList {
		words, all := strings.Fields(text), corev1.ResourceList{}
		for i := 0; i+1 < len(words); i += 2 {
			all[corev1.ResourceName(words[i])] = resource.MustParse(words[i+1])
		}
		return all
	}
	return func(s *v1alpha1.MemcachedSpec) {
		s.Resources = &corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
	}
}

// both are edits as one.
func both(edits ...edit) edit {
	return func(s *v1alpha1.MemcachedSpec) {
		for _, e := range edits {
			e(s)
		}
	}
}

// changes of each field. cannot: Kubernetes does not resize pods.
var changes = []struct {
	field, name string
	from, to    edit
	cannot      bool
	class       rollout.Class
	resize      rollout.Progress
	what        string
}{
	{field: "size", name: "more shards", to: func(s *v1alpha1.MemcachedSpec) { s.Size = ptr.To[int32](5) }, class: rollout.Nothing},
	{field: "paused", name: "paused", to: func(s *v1alpha1.MemcachedSpec) { s.Paused = true }, class: rollout.Nothing},
	{field: "updateStrategy", name: "another strategy", to: func(s *v1alpha1.MemcachedSpec) { s.UpdateStrategy = &v1alpha1.UpdateStrategy{} }, class: rollout.Nothing},
	{field: "hashing", name: "a ring is declared", to: func(s *v1alpha1.MemcachedSpec) { s.Hashing = &v1alpha1.Hashing{Ring: v1alpha1.RingJump} }, class: rollout.Nothing},
	{field: "bootstrap", name: "too late", to: func(s *v1alpha1.MemcachedSpec) { s.Bootstrap = &v1alpha1.Bootstrap{} }, class: rollout.Nothing},
	{field: "backup", name: "a store for the last backup", to: func(s *v1alpha1.MemcachedSpec) { s.Backup = &v1alpha1.FinalBackup{} }, class: rollout.Nothing},
	{field: "deletionPolicy", name: "the default of a newer release", to: func(s *v1alpha1.MemcachedSpec) { s.DeletionPolicy = v1alpha1.DeletionDelete }, class: rollout.Nothing},
	{field: "deletionPolicy", name: "a backup at the end", to: func(s *v1alpha1.MemcachedSpec) { s.DeletionPolicy = v1alpha1.DeletionBackup }, class: rollout.Nothing},
	{field: "rewarm", name: "lost shards are filled", to: func(s *v1alpha1.MemcachedSpec) { s.Rewarm = &v1alpha1.Rewarm{} }, class: rollout.Nothing},

	{field: "version", name: "up", from: version("1.6.38"), to: version("1.6.45"), class: rollout.Recreate, what: "1.6.38 → 1.6.45"},
	{field: "version", name: "down", from: version("1.6.45"), to: version("1.6.18"), class: rollout.Recreate, what: "1.6.45 → 1.6.18"},
	{field: "version", name: "the default, written out", to: version("1.6.45"), class: rollout.Nothing},
	{field: "version", name: "another series", from: version("1.6.45"), to: version("1.7.0"), class: rollout.Replace, what: "1.6.45 → 1.7.0, which starts it empty"},
	{field: "version", name: "two digits are one number", from: version("1.6.9"), to: version("1.6.10"), class: rollout.Recreate, what: "1.6.9 → 1.6.10"},
	{field: "image", name: "another registry", to: image("registry.example.com:5000/memcached:1.6.45"), class: rollout.Recreate,
		what: "image docker.io/library/memcached:1.6.45 → registry.example.com:5000/memcached:1.6.45"},
	{field: "image", name: "another base", from: image("memcached:1.6.38"), to: image("memcached:1.6.38-alpine"), class: rollout.Recreate,
		what: "image memcached:1.6.38 → memcached:1.6.38-alpine"},
	{field: "image", name: "another series", from: image("memcached:1.6.38"), to: image("memcached:1.7.1-alpine"), class: rollout.Replace,
		what: "1.6.38 → 1.7.1, which starts it empty"},
	{field: "image", name: "of no known version", to: image("memcached:latest"), class: rollout.Recreate,
		what: "image docker.io/library/memcached:1.6.45 → memcached:latest"},

	{field: "memory", name: "more", to: memory("128Mi"), class: rollout.Replace, what: "memory 64Mi → 128Mi, which starts it empty"},
	{field: "memory", name: "less", from: memory("128Mi"), to: memory("64Mi"), class: rollout.Replace, what: "memory 128Mi → 64Mi, which starts it empty"},
	{field: "memory", name: "the same in other words", from: memory("64Mi"), to: memory("65536Ki"), class: rollout.Nothing},
	{field: "memory", name: "the same in other units", from: memory("128Mi"), to: memory("134217728"), class: rollout.Nothing},
	{field: "memory", name: "a part of a mebibyte, which is dropped", from: memory("64Mi"), to: memory("66000Ki"), class: rollout.Nothing},
	{field: "maxItemSize", name: "more", to: func(s *v1alpha1.MemcachedSpec) { s.MaxItemSize = ptr.To(resource.MustParse("2Mi")) }, class: rollout.Replace,
		what: "maxItemSize 1Mi → 2Mi, which starts it empty"},

	{field: "connections", name: "the limit follows", to: connections(2048), class: rollout.Restart, resize: rollout.Needed, what: "connections 1024 → 2048"},
	{field: "connections", name: "the limit follows and cannot", to: connections(2048), cannot: true, class: rollout.Replace, what: "connections 1024 → 2048, which starts it empty"},
	{field: "connections", name: "the limit is given", from: resources("| memory 1Gi"), to: both(resources("| memory 1Gi"), connections(2048)), class: rollout.Restart},
	{field: "connections", name: "the limit is given and could not follow", from: resources("| memory 1Gi"), to: both(resources("| memory 1Gi"), connections(2048)), cannot: true, class: rollout.Restart},
	{field: "threads", name: "more", to: func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](8) }, class: rollout.Restart, what: "threads 4 → 8"},

	{field: "extraArgs", name: "verbosity", to: extraArgs("-v"), class: rollout.Restart, what: "extraArgs none → -v"},
	{field: "extraArgs", name: "hash and LRU", from: extraArgs("-o", "hash_algorithm=jenkins"), to: extraArgs("-o", "hash_algorithm=murmur3,hashpower=20,no_lru_crawler,no_lru_maintainer"), class: rollout.Restart},
	{field: "extraArgs", name: "requests in a row, backlog, no dumps, no evictions", to: extraArgs("-R", "40", "-b", "2048", "-X", "-M"), class: rollout.Restart},
	{field: "extraArgs", name: "the same geometry in other words", from: extraArgs("-f", "1.5"), to: extraArgs("--slab-growth-factor=1.5"), class: rollout.Restart},
	{field: "extraArgs", name: "growth factor", to: extraArgs("-f", "1.5"), class: rollout.Replace, what: "extraArgs none → -f 1.5, which starts it empty"},
	{field: "extraArgs", name: "growth factor as another text", from: extraArgs("-f", "1.5"), to: extraArgs("-f", "1.50"), class: rollout.Replace},
	{field: "extraArgs", name: "smallest item", to: extraArgs("-n", "64"), class: rollout.Replace},
	{field: "extraArgs", name: "no CAS", to: extraArgs("-C"), class: rollout.Replace},
	{field: "extraArgs", name: "no CAS, among others", to: extraArgs("-vC"), class: rollout.Replace},
	{field: "extraArgs", name: "slab sizes", to: extraArgs("-o", "slab_sizes=100-200-400"), class: rollout.Replace},
	{field: "extraArgs", name: "slab reassignment", to: extraArgs("-o", "no_slab_reassign"), class: rollout.Replace},
	{field: "extraArgs", name: "not modern", to: extraArgs("-o", "no_modern"), class: rollout.Replace},
	{field: "extraArgs", name: "largest chunk", to: extraArgs("-o", "slab_chunk_max=256"), class: rollout.Replace},
	{field: "extraArgs", name: "largest chunk, as it is anyway", to: extraArgs("-o", "slab_chunk_max=512"), class: rollout.Restart},

	{field: "version", name: "onto the one that reads slab_chunk_max otherwise", from: both(version("1.6.23"), extraArgs("-o", "slab_chunk_max=512")),
		to: both(version("1.6.24"), extraArgs("-o", "slab_chunk_max=512")), class: rollout.Replace, what: "1.6.23 → 1.6.24, which starts it empty"},
	{field: "version", name: "below the one that reads slab_chunk_max otherwise", from: both(version("1.6.18"), extraArgs("-o", "slab_chunk_max=512")),
		to: both(version("1.6.23"), extraArgs("-o", "slab_chunk_max=512")), class: rollout.Recreate},

	{field: "resources", name: "more processor", from: resources("cpu 1"), to: resources("cpu 2"), class: rollout.Live, resize: rollout.Needed, what: "resources"},
	{field: "resources", name: "more memory", from: resources("| memory 1Gi"), to: resources("| memory 2Gi"), class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "where Kubernetes cannot", from: resources("cpu 1"), to: resources("cpu 2"), cannot: true, class: rollout.Replace, what: "resources, which starts it empty"},
	{field: "resources", name: "a limit of processor is added", from: resources("cpu 1"), to: resources("cpu 1 | cpu 2"), class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "a limit of processor is taken away", from: resources("cpu 1 | cpu 2"), to: resources("cpu 1"), class: rollout.Replace},
	{field: "resources", name: "the request of processor becomes the default one", from: resources("cpu 1"), class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "a limit of processor is the request too", to: resources("| cpu 2"), class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "a limit of processor grows, and the request with it", from: resources("| cpu 1"), to: resources("| cpu 2"), class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "the default, written out", to: resources("cpu 100m"), class: rollout.Nothing},
	{field: "resources", name: "limits become the requests", from: resources("cpu 1 memory 1Gi | cpu 2 memory 1Gi"), to: resources("cpu 2 memory 1Gi | cpu 2 memory 1Gi"),
		class: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "another kind", to: resources("cpu 100m example.com/fast 1 | example.com/fast 1"), class: rollout.Replace},
	{field: "resources", name: "the disk", to: resources("cpu 100m ephemeral-storage 1Gi"), class: rollout.Replace},
	{field: "resources", name: "claims", to: func(s *v1alpha1.MemcachedSpec) {
		s.Resources = &corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "fast"}}}
	}, class: rollout.Replace},

	{field: "imagePullPolicy", name: "always", to: func(s *v1alpha1.MemcachedSpec) { s.ImagePullPolicy = corev1.PullAlways }, class: rollout.Live, what: "imagePullPolicy none → Always"},
	{field: "imagePullSecrets", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} }, class: rollout.Live, what: "imagePullSecrets"},
	{field: "podLabels", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.PodLabels = map[string]string{"team": "a"} }, class: rollout.Live, what: "podLabels"},
	{field: "podAnnotations", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.PodAnnotations = map[string]string{"team": "a"} }, class: rollout.Live, what: "podAnnotations"},
	{field: "nodeSelector", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.NodeSelector = map[string]string{"disk": "fast"} }, class: rollout.Replace},
	{field: "tolerations", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.Tolerations = []corev1.Toleration{{Key: "cache"}} }, class: rollout.Replace},
	{field: "affinity", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}} }, class: rollout.Replace},
	{field: "topologySpreadConstraints", name: "one", to: func(s *v1alpha1.MemcachedSpec) {
		s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	}, class: rollout.Replace},
	{field: "priorityClassName", name: "one", to: func(s *v1alpha1.MemcachedSpec) { s.PriorityClassName = "high" }, class: rollout.Replace,
		what: "priorityClassName none → high, which starts it empty"},
}

func TestEachChangeOfAFieldHasItsClass(t *testing.T) {
	shown := map[string]map[rollout.Class]bool{}
	for _, c := range changes {
		t.Run(c.field+" "+c.name, func(t *testing.T) {
			from, to := askedBy(t, c.from), askedBy(t, c.to)
			got := changeOf(from, to, "", true, !c.cannot)
			if got.Class != c.class || got.Resize != c.resize {
				t.Errorf("it is %s with a resize that is %s, want %s and %s", got.Class, got.Resize, c.class, c.resize)
			}
			if c.what != "" && got.What != c.what {
				t.Errorf("it is told as %q, want %q", got.What, c.what)
			}
			if from.Revision() == to.Revision() && got != (rollout.Change{}) {
				t.Errorf("the revision is the same, and it takes %+v", got)
			}
			if same := changeOf(to, to, "", false, false); same != (rollout.Change{}) {
				t.Errorf("from a spec to itself it takes %+v", same)
			}
		})
		if shown[c.field] == nil {
			shown[c.field] = map[rollout.Class]bool{}
		}
		shown[c.field][c.class] = true
	}
	for _, f := range fields {
		for _, class := range []rollout.Class{f.class, cmp.Or(f.may, f.class)} {
			if !shown[f.name][class] {
				t.Errorf("no example shows that %s is %s", f.name, class)
			}
		}
		for class := range shown[f.name] {
			// What means the same is nothing, in any field.
			if class != f.class && class != f.may && class != rollout.Nothing {
				t.Errorf("%s can be %s, which its row does not say", f.name, class)
			}
		}
	}
}

func TestManyFieldsNeedWhatTheMostDemandingOneDoes(t *testing.T) {
	label := func(s *v1alpha1.MemcachedSpec) { s.PodLabels = map[string]string{"team": "a"} }
	from := askedBy(t, version("1.6.38"))
	for _, c := range []struct {
		name  string
		to    edit
		class rollout.Class
		what  string
	}{
		{"a label and threads", both(version("1.6.38"), label, func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }), rollout.Restart, "threads 4 → 2, podLabels"},
		{"a label, connections and a version", both(version("1.6.45"), label, connections(2048)), rollout.Recreate, "1.6.38 → 1.6.45, connections 1024 → 2048, podLabels"},
		{"all that and memory", both(version("1.6.45"), label, connections(2048), memory("1Gi")), rollout.Replace,
			"1.6.38 → 1.6.45, memory 64Mi → 1Gi, connections 1024 → 2048, podLabels, which starts it empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := changeOf(from, askedBy(t, c.to), "", false, true)
			if got.Class != c.class || got.What != c.what {
				t.Errorf("%s: %q, want %s: %q", got.Class, got.What, c.class, c.what)
			}
			if resizes := got.Resize == rollout.Needed; resizes != (c.class == rollout.Recreate) {
				t.Errorf("its resize is %s", got.Resize)
			}
		})
	}
}

// The agent knows better than the tag: one of no version, or of another than it
// holds.
func TestAnotherSeriesIsForbiddenUnlessItsItemsAreGivenUp(t *testing.T) {
	for _, c := range []struct {
		name, from, runs, to string
		acceptCold           bool
		class                rollout.Class
		forbidden            bool
	}{
		{"by the tags", "memcached:1.6.45", "", "memcached:1.7.0", false, rollout.Replace, true},
		{"by the tags, and back", "memcached:1.7.0", "", "memcached:1.6.45", false, rollout.Replace, true},
		{"given up", "memcached:1.6.45", "", "memcached:1.7.0", true, rollout.Replace, false},
		{"by what runs", "memcached:latest", "1.6.45", "memcached:1.7.0", false, rollout.Replace, true},
		{"what runs is not what the tag says", "memcached:1.6.45", "1.7.0", "memcached:1.7.1", false, rollout.Recreate, false},
		{"unknown", "memcached:latest", "", "memcached:1.7.0", false, rollout.Recreate, false},
		{"to an unknown one", "memcached:1.6.45", "1.6.45", "memcached:latest", false, rollout.Recreate, false},
		{"1.10 is not 1.1", "memcached:1.10.1", "", "memcached:1.1.1", false, rollout.Replace, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := changeOf(askedBy(t, image(c.from)), askedBy(t, image(c.to)), c.runs, c.acceptCold, true)
			if got.Class != c.class || (got.Forbidden != "") != c.forbidden {
				t.Errorf("it is %s, forbidden: %q", got.Class, got.Forbidden)
			}
		})
	}
}

// With another container that is limited in full too, a pod could be of another
// class of service, and Kubernetes would not resize it into one.
func TestEveryPodIsBurstableWhateverItsMemcachedAsksFor(t *testing.T) {
	m := &v1alpha1.Memcached{}
	m.Name, m.Namespace = "cache", "default"
	asked := askedBy(t, resources("cpu 1 memory 1Gi | cpu 1 memory 1Gi"))
	m.Spec = asked.Spec
	m.Spec.Size = ptr.To[int32](1)
	objects, err := manifests.Build(m, func(int) manifests.Shard { return manifests.Shard{Asked: asked} }, manifests.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
			installer := set.Spec.Template.Spec.InitContainers[0].Resources
			if _, limited := (*installer.Limits)[corev1.ResourceCPU]; limited || len(*installer.Requests) == 0 {
				t.Errorf("the installer has %+v", installer)
			}
			return
		}
	}
	t.Error("no ReplicaSet was made")
}

func TestAPodHasItsResourcesOnceTheyAreInEffect(t *testing.T) {
	small, large := corev1.ResourceList{"cpu": resource.MustParse("1")}, corev1.ResourceList{"cpu": resource.MustParse("2")}
	want := corev1.ResourceRequirements{Requests: large}
	condition := func(kind corev1.PodConditionType, reason, message string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: kind, Reason: reason, Message: message, Status: corev1.ConditionTrue}}
	}
	for _, c := range []struct {
		name         string
		given        corev1.ResourceList
		conditions   []corev1.PodCondition
		inEffect     corev1.ResourceList
		wantProgress rollout.Progress
		wantWhy      string
	}{
		{"not given", small, nil, small, rollout.Needed, ""},
		{"given", large, nil, small, rollout.Underway, "the kubelet resizes the pod"},
		{"deferred", large, condition(corev1.PodResizePending, corev1.PodReasonDeferred, "Node has no room"), small, rollout.Underway, "Node has no room"},
		{"begun", large, condition(corev1.PodResizeInProgress, "", ""), small, rollout.Underway, "PodResizeInProgress"},
		{"impossible", large, condition(corev1.PodResizePending, corev1.PodReasonInfeasible, "Node is too small"), small, rollout.Refused, "Node is too small"},
		{"in effect", large, nil, large, rollout.Done, ""},
		{"in effect in other words", corev1.ResourceList{"cpu": resource.MustParse("2000m")}, nil, large, rollout.Done, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{}
			pod.Spec.Containers = []corev1.Container{{Name: manifests.Container, Resources: corev1.ResourceRequirements{Requests: c.given}}}
			pod.Status.Conditions = c.conditions
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: manifests.Container, Resources: &corev1.ResourceRequirements{Requests: c.inEffect}}}
			if progress, why := hasResources(pod, want); progress != c.wantProgress || why != c.wantWhy {
				t.Errorf("it is %s: %q, want %s: %q", progress, why, c.wantProgress, c.wantWhy)
			}
		})
	}
}

func TestResourcesOfASpecThatIsNoMoreAreTakenBackIfTheyAreTheOperators(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, quantity := range map[corev1.ResourceName]string{"cpu": cpu, "memory": memory} {
			if quantity != "" {
				all[name] = resource.MustParse(quantity)
			}
		}
		return all
	}
	entry := func(manager, subresource, resources string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:containers":{"k:{\"name\":\"memcached\"}":{"f:resources":` + resources + `}}}}`)}
	}
	const limits, requests, both = `{"f:limits":{"f:memory":{}}}`, `{"f:requests":{"f:memory":{}}}`, `{"f:limits":{"f:memory":{}},"f:requests":{"f:memory":{}}}`
	ours := v1alpha1.ManagedByValue
	want := corev1.ResourceRequirements{Limits: list("", "1Gi"), Requests: list("100m", "1Gi")}
	more := corev1.ResourceRequirements{Limits: list("", "2Gi"), Requests: list("100m", "2Gi")}
	for _, c := range []struct {
		name   string
		given  corev1.ResourceRequirements
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		{"the operator gave both", more, []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", both), entry(ours, "resize", both)}, true},
		{"somebody else gave the request since", more, []metav1.ManagedFieldsEntry{entry("vpa-updater", "resize", requests), entry(ours, "resize", limits)}, false},
		{"the pod was made so", more, []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", both)}, false},
		{"the operator did something else to it", more, []metav1.ManagedFieldsEntry{entry(ours, "", both)}, false},
		{"it has what it is to have", want, []metav1.ManagedFieldsEntry{entry(ours, "resize", both)}, false},
		{"a limit would have to be taken away", corev1.ResourceRequirements{Limits: list("1", "2Gi"), Requests: list("100m", "2Gi")}, []metav1.ManagedFieldsEntry{entry(ours, "resize", both)}, false},
		{"what the API server tells cannot be read", more, []metav1.ManagedFieldsEntry{entry(ours, "resize", `[]`)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.fields}}
			pod.Spec.Containers = []corev1.Container{{Name: manifests.Container, Resources: c.given}}
			if got := isAstray(pod, want); got != c.want {
				t.Errorf("they are to be taken back: %v", got)
			}
		})
	}
}
