package manifests

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

var options = Options{
	AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
	DefaultImage:      fallback,
	OperatorNamespace: "memcached-operator-system",
}

// TestGolden builds the objects of testdata/NAME.in.yaml and compares them with
// testdata/NAME.golden.yaml, which a person reviews.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("inputs: %v, %v", inputs, err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), ".in.yaml")
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var m v1alpha1.Memcached
			if err := yaml.UnmarshalStrict(raw, &m); err != nil {
				t.Fatal(err)
			}
			o := options
			o.AnyUser = name == "openshift"
			image, err := ResolveImage(m.Spec.Image, m.Spec.Version, o.DefaultImage)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := Build(&m, all(&m, image), o)
			if err != nil {
				t.Fatal(err)
			}
			got := render(t, objects)
			golden := strings.TrimSuffix(input, ".in.yaml") + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // a file of the repository
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got); after a look at it, run go test with -update:\n%s", golden, diff)
			}
		})
	}
}

func render(t *testing.T, objects []Object) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		raw, err := yaml.Marshal(o.Apply)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(raw)
	}
	return b.Bytes()
}

func memcached(size int32, change func(*v1alpha1.MemcachedSpec)) *v1alpha1.Memcached {
	m := &v1alpha1.Memcached{Spec: v1alpha1.MemcachedSpec{
		Size:        &size,
		Memory:      ptr.To(resource.MustParse("64Mi")),
		MaxItemSize: ptr.To(resource.MustParse("1Mi")),
		Connections: ptr.To[int32](1024),
		Threads:     ptr.To[int32](4),
	}}
	m.Name, m.Namespace, m.UID = "cache", "default", "uid"
	if change != nil {
		change(&m.Spec)
	}
	return m
}

// all has every shard be what the spec asks for.
func all(m *v1alpha1.Memcached, image Image) func(int) Shard {
	return func(int) Shard { return Shard{Asked: Ask(&m.Spec, image)} }
}

func revision(m *v1alpha1.Memcached, image Image) string { return Ask(&m.Spec, image).Revision() }

func TestWhatIsAskedOfAPodIsReadAsItWasWritten(t *testing.T) {
	m := memcached(3, func(s *v1alpha1.MemcachedSpec) { s.ExtraArgs = []string{"-o", "hash_algorithm=murmur3"} })
	asked := Ask(&m.Spec, Image{Reference: "example.com:5000/mc:1.6.38-alpine", Version: "1.6.38"})
	read, err := ReadAsked(asked.String())
	if err != nil {
		t.Fatal(err)
	}
	if again := Ask(&read.Spec, read.Image); read.Revision() != asked.Revision() || again.Revision() != asked.Revision() || read.Image != asked.Image {
		t.Errorf("read %+v, asked %+v, asked again %+v", read, asked, again)
	}
	for _, bad := range []string{"", "{", "{}", `{"memory":"64Mi"}`} {
		if _, err := ReadAsked(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestTheMemoryLimitIsTheFormulaOfTheFacts(t *testing.T) {
	m := memcached(1, nil)
	want := int64(64<<20)/100*110 + 48<<20 + 1024*1024
	if got := MemoryLimit(&m.Spec); got.Value() != want {
		t.Errorf("limit %d bytes, want %d", got.Value(), want)
	}
}

func TestResources(t *testing.T) {
	q := resource.MustParse
	list := func(pairs ...string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for i := 0; i < len(pairs); i += 2 {
			l[corev1.ResourceName(pairs[i])] = q(pairs[i+1])
		}
		return l
	}
	limit := MemoryLimit(&memcached(1, nil).Spec)
	for name, c := range map[string]struct {
		reason string
		spec   *corev1.ResourceRequirements
		want   corev1.ResourceRequirements
	}{
		"Nothing":       {"the memory is promised, the processor not limited", nil, corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit}, Requests: corev1.ResourceList{"memory": limit, "cpu": q("100m")}}},
		"MemoryLimit":   {"a limit is a request too", &corev1.ResourceRequirements{Limits: list("memory", "1Gi")}, corev1.ResourceRequirements{Limits: list("memory", "1Gi"), Requests: list("memory", "1Gi", "cpu", "100m")}},
		"CPULimit":      {"a limit of the processor is a request too, as the API server has it", &corev1.ResourceRequirements{Limits: list("cpu", "50m", "memory", "1Gi")}, corev1.ResourceRequirements{Limits: list("cpu", "50m", "memory", "1Gi"), Requests: list("cpu", "50m", "memory", "1Gi")}},
		"MemoryRequest": {"a request above the default limit raises it", &corev1.ResourceRequirements{Requests: list("memory", "4Gi")}, corev1.ResourceRequirements{Limits: list("memory", "4Gi"), Requests: list("memory", "4Gi", "cpu", "100m")}},
		"SmallRequest":  {"a person may overcommit", &corev1.ResourceRequirements{Requests: list("memory", "1Mi", "cpu", "1m")}, corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": limit}, Requests: list("memory", "1Mi", "cpu", "1m")}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Resources(&memcached(1, func(s *v1alpha1.MemcachedSpec) { s.Resources = c.spec }).Spec)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestTheRevisionIsOfWhatAPodIsAskedFor(t *testing.T) {
	image := Image{Reference: fallback, Version: "1.6.45"}
	base := revision(memcached(3, nil), image)
	for name, m := range map[string]*v1alpha1.Memcached{
		"size": memcached(5, nil),
		"the strategy": memcached(3, func(s *v1alpha1.MemcachedSpec) {
			s.UpdateStrategy = &v1alpha1.UpdateStrategy{WhenNotWarm: v1alpha1.ActionContinue}
		}),
		"paused":                          memcached(3, func(s *v1alpha1.MemcachedSpec) { s.Paused = true }),
		"the default version written out": memcached(3, func(s *v1alpha1.MemcachedSpec) { s.Version = "1.6.45" }),
	} {
		if revision(m, image) != base {
			t.Errorf("%s must not change the revision: no pod differs for it", name)
		}
	}
	for name, m := range map[string]*v1alpha1.Memcached{
		"memory":     memcached(3, func(s *v1alpha1.MemcachedSpec) { s.Memory = ptr.To(resource.MustParse("65Mi")) }),
		"threads":    memcached(3, func(s *v1alpha1.MemcachedSpec) { s.Threads = ptr.To[int32](2) }),
		"extra args": memcached(3, func(s *v1alpha1.MemcachedSpec) { s.ExtraArgs = []string{"-v"} }),
		"pod labels": memcached(3, func(s *v1alpha1.MemcachedSpec) { s.PodLabels = map[string]string{"a": "b"} }),
	} {
		if revision(m, image) == base {
			t.Errorf("%s must change the revision", name)
		}
	}
	if revision(memcached(3, nil), Image{Reference: "x"}) == base {
		t.Error("another image must change the revision")
	}
}

func TestOrdinal(t *testing.T) {
	for name, want := range map[string]int{
		"cache-0": 0, "cache-12": 12,
		"cache": -1, "cache-": -1, "cache-x": -1, "cache-01": -1, "cache--1": -1, "cache-+1": -1, "other-0": -1, "cache-0-0": -1,
		"cache-99999999999999999999": -1,
	} {
		got, ok := Ordinal("cache", name)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("ordinal of %q is %d, want %d (-1: not a shard)", name, got, want)
		}
	}
}

// FuzzBuild holds for any spec: the objects are those of Keys, in that order, the
// same each time, owned by the Memcached, of legal names, under the operator's
// labels whatever a person adds.
func FuzzBuild(f *testing.F) {
	f.Add("cache", int32(3), int64(64<<20), "-v", "team", "a", "zone")
	f.Add("a", int32(0), int64(16<<20), "", "", "", "")
	f.Add(strings.Repeat("x", 52), int32(11), int64(1<<40), "--extended=x", "app.kubernetes.io/instance", "evil", "kubernetes.io/hostname")
	f.Fuzz(func(t *testing.T, name string, size int32, memory int64, arg, label, value, topology string) {
		if size < 0 || size > 20 || memory < 16<<20 || len(name) > 52 || len(validation.IsDNS1035Label(name)) > 0 {
			return // the CRD refuses it
		}
		m := memcached(size, func(s *v1alpha1.MemcachedSpec) {
			s.Memory = resource.NewQuantity(memory, resource.BinarySI)
			s.ExtraArgs = []string{arg}
			s.PodLabels = map[string]string{label: value}
			s.PodAnnotations = map[string]string{label: value}
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: topology, MaxSkew: 1}}
		})
		m.Name = name
		image := Image{Reference: fallback, Version: "1.6.45"}
		objects, err := Build(m, all(m, image), options)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Build(m.DeepCopy(), all(m, image), options)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(render(t, objects), render(t, again)); diff != "" {
			t.Fatalf("built twice, it differs:\n%s", diff)
		}
		keys := Keys(name, int(size))
		if len(keys) != len(objects) {
			t.Fatalf("%d objects for %d keys", len(objects), len(keys))
		}
		for i, o := range objects {
			meta := metaOf(t, o)
			if o.Key != keys[i] || *meta.Name != o.Key.Name {
				t.Fatalf("object %d is %s named %s, want %s", i, o.Key, *meta.Name, keys[i])
			}
			if problems := validation.IsDNS1035Label(*meta.Name); len(problems) > 0 {
				t.Fatalf("%s: %v", o.Key, problems)
			}
			if len(meta.OwnerReferences) != 1 || *meta.OwnerReferences[0].UID != m.UID || !*meta.OwnerReferences[0].Controller {
				t.Fatalf("%s is not controlled by the Memcached", o.Key)
			}
			if meta.Labels[v1alpha1.LabelInstance] != name || meta.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedByValue {
				t.Fatalf("%s bears the labels %v", o.Key, meta.Labels)
			}
			if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
				for k, v := range set.Spec.Selector.MatchLabels {
					if set.Spec.Template.Labels[k] != v {
						t.Fatalf("%s selects %s=%s, its pods bear %q", o.Key, k, v, set.Spec.Template.Labels[k])
					}
				}
			}
		}
	})
}

func metaOf(t *testing.T, o Object) *metav1ac.ObjectMetaApplyConfiguration {
	switch o := o.Apply.(type) {
	case *appsv1ac.ReplicaSetApplyConfiguration:
		return o.ObjectMetaApplyConfiguration
	case *corev1ac.ServiceApplyConfiguration:
		return o.ObjectMetaApplyConfiguration
	case *policyv1ac.PodDisruptionBudgetApplyConfiguration:
		return o.ObjectMetaApplyConfiguration
	case *networkingv1ac.NetworkPolicyApplyConfiguration:
		return o.ObjectMetaApplyConfiguration
	default:
		t.Fatalf("an object of type %T", o)
		return nil
	}
}

// What holds a shard is no part of what is asked of its pod: else the pod would
// look outdated once it is not held any more.
func TestAHeldShardIsAskedForTheSameAndOthersAreNotHeld(t *testing.T) {
	m := memcached(2, nil)
	image := Image{Reference: fallback, Version: "1.6.45"}
	const until = "2026-11-21T15:04:00Z"
	objects, err := Build(m, func(ordinal int) Shard {
		s := Shard{Asked: Ask(&m.Spec, image)}
		if ordinal == 0 {
			s.HoldUntil = until
		}
		return s
	}, options)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range objects {
		set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration)
		if !ok {
			continue
		}
		annotations := set.Spec.Template.Annotations
		if annotations[v1alpha1.AnnotationRevision] != revision(m, image) {
			t.Errorf("%s is of revision %s", o.Key, annotations[v1alpha1.AnnotationRevision])
		}
		held, is := annotations[v1alpha1.AnnotationHoldUntil]
		seen[o.Key.Name+" "+held] = is
	}
	if want := map[string]bool{"cache-0 " + until: true, "cache-1 ": false}; !maps.Equal(seen, want) {
		t.Errorf("held are %v, want %v", seen, want)
	}
}

// A release that adds a field, and the API server that fills in its default, must
// not make every shard look outdated.
func TestFieldsThatConcernNoPodAreNotAskedOfOne(t *testing.T) {
	image := Image{Reference: fallback, Version: "1.6.45"}
	want := revision(memcached(3, nil), image)
	for name, change := range map[string]func(*v1alpha1.MemcachedSpec){
		"size":           func(s *v1alpha1.MemcachedSpec) { s.Size = ptr.To[int32](7) },
		"paused":         func(s *v1alpha1.MemcachedSpec) { s.Paused = true },
		"updateStrategy": func(s *v1alpha1.MemcachedSpec) { s.UpdateStrategy = &v1alpha1.UpdateStrategy{} },
		"hashing":        func(s *v1alpha1.MemcachedSpec) { s.Hashing = &v1alpha1.Hashing{Ring: v1alpha1.RingKetama} },
		"bootstrap":      func(s *v1alpha1.MemcachedSpec) { s.Bootstrap = &v1alpha1.Bootstrap{} },
		"backup":         func(s *v1alpha1.MemcachedSpec) { s.Backup = &v1alpha1.FinalBackup{} },
		"deletionPolicy": func(s *v1alpha1.MemcachedSpec) { s.DeletionPolicy = v1alpha1.DeletionDelete },
		"rewarm":         func(s *v1alpha1.MemcachedSpec) { s.Rewarm = &v1alpha1.Rewarm{} },
	} {
		if got := revision(memcached(3, change), image); got != want {
			t.Errorf("%s changes what is asked of a pod", name)
		}
	}
}
