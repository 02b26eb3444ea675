package resources

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files")

var options = Options{
	AgentImage:        "ghcr.io/memcached-operator/memcached-operator:v1.0.0",
	DefaultImage:      fallback,
	OperatorNamespace: "memcached-operator-system",
	LogFormat:         "json",

	MonitoringNamespaces: []string{"monitoring"},
}

// TestBuildMatchesGoldenFiles builds the objects of testdata/NAME.in.yaml and compares them with
// testdata/NAME.golden.yaml, which is reviewed when it changes.
func TestBuildMatchesGoldenFiles(t *testing.T) {
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
			var m v1beta1.Memcached
			if err := yaml.UnmarshalStrict(raw, &m); err != nil {
				t.Fatal(err)
			}
			o := options
			o.OmitRunAsUser = name == "openshift"
			image, err := ResolveImage(m.Spec.Pod.Image, m.Spec.Version, o.DefaultImage)
			if err != nil {
				t.Fatal(err)
			}
			objects := build(&m, upToDate(&m, image), o)
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
				t.Errorf("%s (-want +got); review it and run the test with -update:\n%s", golden, diff)
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

func memcached(size int32, change func(*v1beta1.MemcachedSpec)) *v1beta1.Memcached {
	m := &v1beta1.Memcached{Spec: v1beta1.MemcachedSpec{
		Size:   &size,
		Memory: ptr.To(resource.MustParse("64Mi")),
		Config: v1beta1.MemcachedConfig{MaxItemSize: ptr.To(resource.MustParse("1Mi")),
			MaxConnections: ptr.To[int32](1024),
			Threads:        ptr.To[int32](4)},
	}}
	m.Name, m.Namespace, m.UID = "cache", "default", "uid"
	if change != nil {
		change(&m.Spec)
	}
	return m
}

// build builds all objects of a Memcached.
func build(m *v1beta1.Memcached, shard func(ordinal int) Shard, options Options) []Object {
	shards := make([]Shard, *m.Spec.Size)
	for ordinal := range shards {
		shards[ordinal] = shard(ordinal)
	}
	b := NewBuilder(m, options)
	var objects []Object
	for _, d := range b.Desired(shards) {
		objects = append(objects, b.Build(d))
	}
	return objects
}

// upToDate returns shards that match the spec.
func upToDate(m *v1beta1.Memcached, image Image) func(int) Shard {
	return func(int) Shard { return Shard{Revision: NewPodRevision(&m.Spec, image)} }
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

func TestOrdinalOfAKey(t *testing.T) {
	for key, want := range map[Key]int{
		{KindService, "cache-0"}: 0, {KindReplicaSet, "cache-12"}: 12, ExternalKey("cache-12"): 12,
		{KindService, "cache"}: -1, {KindService, "cache-ext"}: -1, {KindService, "cache-0-ext-ext"}: -1, {KindService, DiscoveryName("cache")}: -1,
		{KindReplicaSet, "cache-0-ext"}: -1,
	} {
		got, ok := key.Ordinal("cache")
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("ordinal of %s is %d, want %d (-1: not a shard's)", key, got, want)
		}
	}
	// Another Memcached has such a name.
	if ordinal, isShards := (Key{KindService, "cache-0-ext"}).Ordinal("cache-0-ext"); isShards {
		t.Errorf("the headless Service is taken for one of shard %d", ordinal)
	}
}

func TestExternalServiceOfTheLongestNameIsValid(t *testing.T) {
	key := ExternalKey(ShardName(strings.Repeat("x", 52), 999))
	if problems := validation.IsDNS1035Label(key.Name); len(problems) > 0 {
		t.Errorf("%s: %v", key, problems)
	}
}

// The port of the agent must never be reachable from outside the cluster, and the Services inside it keep their type.
func TestExternalServicesHaveThePortOfMemcachedOnly(t *testing.T) {
	m := memcached(2, func(s *v1beta1.MemcachedSpec) {
		s.Access.External.Mode, s.Access.Discovery.Mode = v1beta1.ExternalLoadBalancer, v1beta1.DiscoveryElastiCache
		s.Access.ServiceMetadata.Annotations = map[string]string{"example.com/hostname": "cache.example.com"}
		s.Access.External.Annotations = map[string]string{"example.com/hostname": "{shard}.example.com", "example.com/number": "{ordinal}"}
	})
	objects := build(m, upToDate(m, Image{Reference: fallback}), options)
	var external []string
	for _, o := range objects {
		service, ok := o.Apply.(*corev1ac.ServiceApplyConfiguration)
		if !ok {
			continue
		}
		if service.Spec.Type == nil || *service.Spec.Type == corev1.ServiceTypeClusterIP {
			if len(service.Annotations) != 1 || service.Annotations["example.com/hostname"] != "cache.example.com" {
				t.Errorf("%s has the annotations %v", *service.Name, service.Annotations)
			}
			continue
		}
		external = append(external, *service.Name)
		if ports := service.Spec.Ports; len(ports) != 1 || *ports[0].Port != 11211 || *ports[0].TargetPort != intstr.FromString("memcached") {
			t.Errorf("%s has the ports %+v", *service.Name, ports)
		}
		ordinal := service.Spec.Selector[v1beta1.LabelShard]
		if ordinal+externalSuffix != strings.TrimPrefix(*service.Name, "cache-") {
			t.Errorf("%s selects %v", *service.Name, service.Spec.Selector)
		}
		if a := service.Annotations; a["example.com/hostname"] != "cache-"+ordinal+".example.com" || a["example.com/number"] != ordinal {
			t.Errorf("%s has the annotations %v", *service.Name, a)
		}
	}
	if !slices.Equal(external, []string{"cache-0-ext", "cache-1-ext"}) {
		t.Errorf("the external Services are %q", external)
	}
}

// The objects are those of Keys in that order, the same each time, owned by the Memcached, with valid names and with the
// operator's labels in spite of the user's.
func TestObjectsAreThoseOfTheMemcached(t *testing.T) {
	for name, size := range map[string]int32{"a": 0, "cache": 3, strings.Repeat("x", 52): 11} {
		m := memcached(size, func(s *v1beta1.MemcachedSpec) {
			s.Access.Discovery.Mode = map[bool]v1beta1.DiscoveryMode{true: v1beta1.DiscoveryElastiCache}[size%2 == 1]
			if size > 1 {
				s.Access.External.Mode = v1beta1.ExternalLoadBalancer
			}
			theirs := map[string]string{v1beta1.LabelInstance: "evil", v1beta1.LabelShard: "7", "team": "a"}
			s.Access.ServiceMetadata.Labels, s.Pod.Metadata.Labels, s.Pod.Metadata.Annotations = theirs, theirs, theirs
		})
		m.Name = name
		image := Image{Reference: fallback, Version: "1.6.45"}
		objects := build(m, upToDate(m, image), options)
		again := build(m.DeepCopy(), upToDate(m, image), options)
		if diff := cmp.Diff(render(t, objects), render(t, again)); diff != "" {
			t.Fatalf("the second build differs:\n%s", diff)
		}
		keys := Keys(m)
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
			if meta.Labels[v1beta1.LabelInstance] != name || meta.Labels[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue {
				t.Fatalf("%s has the labels %v", o.Key, meta.Labels)
			}
			if ordinal, isShards := o.Key.Ordinal(name); isShards && (ordinal >= int(size) || meta.Labels[v1beta1.LabelShard] != strconv.Itoa(ordinal)) {
				t.Fatalf("%s is taken for one of shard %d", o.Key, ordinal)
			}
			if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
				for k, v := range set.Spec.Selector.MatchLabels {
					if set.Spec.Template.Labels[k] != v {
						t.Fatalf("%s selects %s=%s, its pods have %q", o.Key, k, v, set.Spec.Template.Labels[k])
					}
				}
			}
		}
	}
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

func TestSurgeCreatesASecondPodOfItsShardOnly(t *testing.T) {
	m := memcached(2, nil)
	objects := build(m, func(ordinal int) Shard {
		return Shard{Revision: NewPodRevision(&m.Spec, Image{Reference: fallback}), Surge: ordinal == 1}
	}, options)
	replicas := map[string]int32{}
	for _, o := range objects {
		if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
			replicas[o.Key.Name] = *set.Spec.Replicas
		}
	}
	if want := map[string]int32{"cache-0": 1, "cache-1": 2}; !maps.Equal(replicas, want) {
		t.Errorf("replicas: got %v, want %v", replicas, want)
	}
}

func TestFallbackOfABudgetHasItsPreconditions(t *testing.T) {
	m := &v1beta1.Memcached{}
	m.Name, m.Spec.Size = "cache", ptr.To[int32](0)
	b := NewBuilder(m, options)
	i := slices.IndexFunc(b.Desired(nil), func(d Desired) bool { return d.Key.Kind == KindPodDisruptionBudget })
	budget := b.Build(b.Desired(nil)[i])
	budget.WithPreconditions("observed", "7")
	raw, err := json.Marshal(budget.Fallback)
	if text := string(raw); err != nil || !strings.Contains(text, `"uid":"observed"`) || !strings.Contains(text, `"resourceVersion":"7"`) || !strings.Contains(text, `"minAvailable":null`) {
		t.Errorf("%s, error %v", raw, err)
	}
}

func TestKeyOfAnObjectHasItsKind(t *testing.T) {
	for _, kind := range OwnedKinds() {
		o := kind.New()
		o.SetName("cache")
		if got := KeyOf(o); got != (Key{kind.Kind, "cache"}) {
			t.Errorf("%s: %s", kind.Kind, got)
		}
	}
}
