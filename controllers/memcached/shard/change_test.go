package shard

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard/shardtest"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

var (
	podRevision    = shardtest.Revision
	all            = shardtest.All
	version        = shardtest.Version
	image          = shardtest.Image
	memory         = shardtest.Memory
	maxConnections = shardtest.MaxConnections
	extraArgs      = shardtest.ExtraArgs
	withResources  = shardtest.Resources
)

// changes are examples for each field.
var changes = []struct {
	field, name string
	from, to    shardtest.Edit
	// can is what Kubernetes resizes of pods; nil is all.
	can *resources.Resizing
	// lacksSecret is whether the pod doesn't mount the Secret.
	lacksSecret bool
	method      rollout.Method
	resize      rollout.Progress
	description string
}{
	{field: "size", name: "increased", to: func(s *v1beta1.MemcachedSpec) { s.Size = ptr.To[int32](5) }, method: rollout.None},
	{field: "paused", name: "paused", to: func(s *v1beta1.MemcachedSpec) { s.Paused = true }, method: rollout.None},
	{field: "access.networkPolicy", name: "opened", to: func(s *v1beta1.MemcachedSpec) { s.Access.NetworkPolicy.Mode = v1beta1.NetworkPolicyOpen }, method: rollout.None},
	{field: "access.discovery", name: "enabled", to: func(s *v1beta1.MemcachedSpec) { s.Access.Discovery.Mode = v1beta1.DiscoveryElastiCache }, method: rollout.None},
	{field: "access.binding", name: "enabled", to: func(s *v1beta1.MemcachedSpec) { s.Access.Binding.Mode = v1beta1.BindingSecret }, method: rollout.None},
	{field: "access.external", name: "load balancers", to: func(s *v1beta1.MemcachedSpec) { s.Access.External.Mode = v1beta1.ExternalLoadBalancer }, method: rollout.None},
	{field: "access.ipFamilyPolicy", name: "two stacks", to: func(s *v1beta1.MemcachedSpec) { s.Access.IPFamilyPolicy = corev1.IPFamilyPolicyPreferDualStack }, method: rollout.None},
	{field: "access.ipFamilies", name: "IPv6 first", to: func(s *v1beta1.MemcachedSpec) {
		s.Access.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	}, method: rollout.None},
	{field: "access.serviceMetadata", name: "an annotation is added", to: func(s *v1beta1.MemcachedSpec) { s.Access.ServiceMetadata.Annotations = map[string]string{"a": "b"} }, method: rollout.None},
	{field: "monitoring", name: "with slab classes", to: func(s *v1beta1.MemcachedSpec) {
		s.Monitoring.Details = []v1beta1.MonitoringDetail{v1beta1.MonitoringSlabs}
	}, method: rollout.None},
	{field: "updateStrategy", name: "disabled", to: func(s *v1beta1.MemcachedSpec) { s.UpdateStrategy.Handover.Mode = v1beta1.HandoverDisabled }, method: rollout.None},
	{field: "updateStrategy", name: "changed", to: func(s *v1beta1.MemcachedSpec) { s.UpdateStrategy = v1beta1.UpdateStrategy{} }, method: rollout.None},
	{field: "scaling", name: "cold", to: func(s *v1beta1.MemcachedSpec) { s.Scaling.Mode = v1beta1.ScalingCold }, method: rollout.None},
	{field: "access.hashing", name: "algorithm is set", to: func(s *v1beta1.MemcachedSpec) { s.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashJump} }, method: rollout.None},
	{field: "backup.bootstrap", name: "set later", to: func(s *v1beta1.MemcachedSpec) { s.Backup.Bootstrap = &v1beta1.Bootstrap{} }, method: rollout.None},
	{field: "backup.final", name: "a store is added", to: func(s *v1beta1.MemcachedSpec) { s.Backup.Final = &v1beta1.FinalBackup{} }, method: rollout.None},
	{field: "deletionPolicy", name: "the default is written out", to: func(s *v1beta1.MemcachedSpec) { s.DeletionPolicy = v1beta1.DeletionDelete }, method: rollout.None},
	{field: "deletionPolicy", name: "Backup", to: func(s *v1beta1.MemcachedSpec) { s.DeletionPolicy = v1beta1.DeletionBackup }, method: rollout.None},
	{field: "backup.refill", name: "enabled", to: func(s *v1beta1.MemcachedSpec) { s.Backup.Refill = v1beta1.Refill{Mode: v1beta1.RefillNewestBackup} }, method: rollout.None},

	{field: "version", name: "upgrade", from: version("1.6.38"), to: version("1.6.45"), method: rollout.Recreate, description: "1.6.38 → 1.6.45"},
	{field: "version", name: "downgrade", from: version("1.6.45"), to: version("1.6.18"), method: rollout.Recreate, description: "1.6.45 → 1.6.18"},
	{field: "version", name: "the default is written out", to: version("1.6.45"), method: rollout.None},
	{field: "version", name: "another release series", from: version("1.6.45"), to: version("1.7.0"), method: rollout.Replace, description: "1.6.45 → 1.7.0, which starts it empty"},
	{field: "version", name: "numbers with two digits", from: version("1.6.9"), to: version("1.6.10"), method: rollout.Recreate, description: "1.6.9 → 1.6.10"},
	{field: "pod.image", name: "another registry", to: image("registry.example.com:5000/memcached:1.6.45"), method: rollout.Recreate,
		description: "image docker.io/library/memcached:1.6.45 → registry.example.com:5000/memcached:1.6.45"},
	{field: "pod.image", name: "another variant", from: image("memcached:1.6.38"), to: image("memcached:1.6.38-alpine"), method: rollout.Recreate,
		description: "image memcached:1.6.38 → memcached:1.6.38-alpine"},
	{field: "pod.image", name: "another release series", from: image("memcached:1.6.38"), to: image("memcached:1.7.1-alpine"), method: rollout.Replace,
		description: "1.6.38 → 1.7.1, which starts it empty"},
	{field: "pod.image", name: "no version in the tag", to: image("memcached:latest"), method: rollout.Recreate,
		description: "image docker.io/library/memcached:1.6.45 → memcached:latest"},

	{field: "memory", name: "increased", to: memory("128Mi"), method: rollout.Replace, description: "memory 64Mi → 128Mi, which starts it empty"},
	{field: "memory", name: "decreased", from: memory("128Mi"), to: memory("64Mi"), method: rollout.Replace, description: "memory 128Mi → 64Mi, which starts it empty"},
	{field: "memory", name: "the same amount in another unit", from: memory("64Mi"), to: memory("65536Ki"), method: rollout.None},
	{field: "memory", name: "the same amount in bytes", from: memory("128Mi"), to: memory("134217728"), method: rollout.None},
	{field: "memory", name: "a fraction of a mebibyte is rounded down", from: memory("64Mi"), to: memory("66000Ki"), method: rollout.None},
	{field: "config.maxItemSize", name: "increased", to: func(s *v1beta1.MemcachedSpec) { s.Config.MaxItemSize = ptr.To(resource.MustParse("2Mi")) }, method: rollout.Replace,
		description: "config.maxItemSize 1Mi → 2Mi, which starts it empty"},

	{field: "config.maxConnections", name: "the memory limit follows", to: maxConnections(2048), method: rollout.Restart, resize: rollout.Needed, description: "config.maxConnections 1024 → 2048"},
	{field: "config.maxConnections", name: "the memory limit can't follow", to: maxConnections(2048), can: new(resources.ResizeNothing), method: rollout.Replace, description: "config.maxConnections 1024 → 2048, which starts it empty"},
	{field: "config.maxConnections", name: "the memory limit is set", from: withResources("| memory 1Gi"), to: all(withResources("| memory 1Gi"), maxConnections(2048)), method: rollout.Restart},
	{field: "config.maxConnections", name: "the memory limit is set and could not follow", from: withResources("| memory 1Gi"), to: all(withResources("| memory 1Gi"), maxConnections(2048)), can: new(resources.ResizeNothing), method: rollout.Restart},
	{field: "config.threads", name: "increased", to: func(s *v1beta1.MemcachedSpec) { s.Config.Threads = ptr.To[int32](8) }, method: rollout.Restart, description: "config.threads 4 → 8"},

	{field: "config.extraArgs", name: "verbosity", to: extraArgs("-v"), method: rollout.Restart, description: "config.extraArgs none → -v"},
	{field: "config.extraArgs", name: "hash and LRU", from: extraArgs("-o", "hash_algorithm=jenkins"), to: extraArgs("-o", "hash_algorithm=murmur3,hashpower=20,no_lru_crawler,no_lru_maintainer"), method: rollout.Restart},
	{field: "config.extraArgs", name: "requests per event, backlog, no dumps, no evictions", to: extraArgs("-R", "40", "-b", "2048", "-X", "-M"), method: rollout.Restart},
	{field: "config.extraArgs", name: "the same slab sizes with a long option", from: extraArgs("-f", "1.5"), to: extraArgs("--slab-growth-factor=1.5"), method: rollout.Restart},
	{field: "config.extraArgs", name: "growth factor", to: extraArgs("-f", "1.5"), method: rollout.Replace, description: "config.extraArgs none → -f 1.5, which starts it empty"},
	{field: "config.extraArgs", name: "growth factor written differently", from: extraArgs("-f", "1.5"), to: extraArgs("-f", "1.50"), method: rollout.Replace},
	{field: "config.extraArgs", name: "minimum item size", to: extraArgs("-n", "64"), method: rollout.Replace},
	{field: "config.extraArgs", name: "no CAS", to: extraArgs("-C"), method: rollout.Replace},
	{field: "config.extraArgs", name: "no CAS in a combined option", to: extraArgs("-vC"), method: rollout.Replace},
	{field: "config.extraArgs", name: "slab sizes", to: extraArgs("-o", "slab_sizes=100-200-400"), method: rollout.Replace},
	{field: "config.extraArgs", name: "slab reassignment", to: extraArgs("-o", "no_slab_reassign"), method: rollout.Replace},
	{field: "config.extraArgs", name: "no_modern", to: extraArgs("-o", "no_modern"), method: rollout.Replace},
	{field: "config.extraArgs", name: "maximum chunk size", to: extraArgs("-o", "slab_chunk_max=256"), method: rollout.Replace},
	{field: "config.extraArgs", name: "maximum chunk size is the default", to: extraArgs("-o", "slab_chunk_max=512"), method: rollout.Restart},

	{field: "tls", name: "switched on", to: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}), method: rollout.Restart, resize: rollout.Needed, description: "tls"},
	{field: "tls", name: "switched on and Kubernetes can't resize pods", to: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}), can: new(resources.ResizeNothing), method: rollout.Replace, description: "tls, which starts it empty"},
	{field: "tls", name: "plain connections are rejected", from: all(withResources("| memory 1Gi"), tls(v1beta1.TLSSpec{Mode: v1beta1.TLSPermissive})), to: all(withResources("| memory 1Gi"), tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired})), method: rollout.Restart},
	{field: "tls", name: "client certificates", from: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}), to: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, ClientCertificates: v1beta1.ClientCertificatesRequired}), method: rollout.Restart},
	{field: "tls", name: "the default is written out", from: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired}), to: tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, MinTLSVersion: v1beta1.TLS12}), method: rollout.None},

	{field: "auth", name: "switched on", to: func(s *v1beta1.MemcachedSpec) { s.Auth = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired} }, method: rollout.Restart, description: "auth"},
	{field: "auth", name: "switched on in a pod without the Secret", to: func(s *v1beta1.MemcachedSpec) { s.Auth = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired} }, lacksSecret: true, method: rollout.Replace, description: "auth, which starts it empty"},

	{field: "version", name: "to the release that changed slab_chunk_max", from: all(version("1.6.23"), extraArgs("-o", "slab_chunk_max=512")),
		to: all(version("1.6.24"), extraArgs("-o", "slab_chunk_max=512")), method: rollout.Replace, description: "1.6.23 → 1.6.24, which starts it empty"},
	{field: "version", name: "to a release before slab_chunk_max changed", from: all(version("1.6.18"), extraArgs("-o", "slab_chunk_max=512")),
		to: all(version("1.6.23"), extraArgs("-o", "slab_chunk_max=512")), method: rollout.Recreate},

	{field: "resources", name: "more CPU", from: withResources("cpu 1"), to: withResources("cpu 2"), method: rollout.Live, resize: rollout.Needed, description: "resources"},
	{field: "resources", name: "more memory", from: withResources("| memory 1Gi"), to: withResources("| memory 2Gi"), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "Kubernetes can't resize pods", from: withResources("cpu 1"), to: withResources("cpu 2"), can: new(resources.ResizeNothing), method: rollout.Replace, description: "resources, which starts it empty"},
	{field: "resources", name: "less memory", from: withResources("| memory 2Gi"), to: withResources("| memory 1Gi"), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "less memory, which Kubernetes 1.33 rejects", from: withResources("| memory 2Gi"), to: withResources("| memory 1Gi"), can: new(resources.ResizeExceptLessMemory), method: rollout.Replace},
	{field: "resources", name: "less CPU and more memory with Kubernetes 1.33", from: withResources("cpu 2 | memory 1Gi"), to: withResources("cpu 1 | memory 2Gi"), can: new(resources.ResizeExceptLessMemory), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "CPU limit added", from: withResources("cpu 1"), to: withResources("cpu 1 | cpu 2"), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "CPU limit removed", from: withResources("cpu 1 | cpu 2"), to: withResources("cpu 1"), method: rollout.Replace},
	{field: "resources", name: "CPU request returns to the default", from: withResources("cpu 1"), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "CPU limit is also the request", to: withResources("| cpu 2"), method: rollout.Replace, description: "resources, which starts it empty"}, // Burstable to Guaranteed
	{field: "resources", name: "CPU request lowered below the limit", from: withResources("| cpu 2"), to: withResources("cpu 1 | cpu 2"), method: rollout.Replace},
	{field: "resources", name: "memory request lowered below the limit", from: withResources("| cpu 2 memory 1Gi"), to: withResources("memory 512Mi | cpu 2 memory 1Gi"), method: rollout.Replace},
	{field: "resources", name: "CPU limit and the request with it", from: withResources("| cpu 1"), to: withResources("| cpu 2"), method: rollout.Live, resize: rollout.Needed},
	{field: "resources", name: "the default is written out", to: withResources("cpu 100m"), method: rollout.None},
	{field: "resources", name: "CPU request raised to the limit", from: withResources("cpu 1 memory 1Gi | cpu 2 memory 1Gi"), to: withResources("cpu 2 memory 1Gi | cpu 2 memory 1Gi"),
		method: rollout.Replace},
	{field: "resources", name: "extended resource", to: withResources("cpu 100m example.com/fast 1 | example.com/fast 1"), method: rollout.Replace},
	{field: "resources", name: "ephemeral storage", to: withResources("cpu 100m ephemeral-storage 1Gi"), method: rollout.Replace},

	{field: "pod.imagePullPolicy", name: "Always", to: func(s *v1beta1.MemcachedSpec) { s.Pod.ImagePullPolicy = corev1.PullAlways }, method: rollout.Live, description: "pod.imagePullPolicy none → Always"},
	{field: "pod.imagePullSecrets", name: "a Secret", to: func(s *v1beta1.MemcachedSpec) { s.Pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}} }, method: rollout.Live, description: "pod.imagePullSecrets"},
	{field: "pod.metadata", name: "a label", to: func(s *v1beta1.MemcachedSpec) { s.Pod.Metadata.Labels = map[string]string{"team": "a"} }, method: rollout.Live, description: "pod.metadata"},
	{field: "pod.metadata", name: "an annotation", to: func(s *v1beta1.MemcachedSpec) { s.Pod.Metadata.Annotations = map[string]string{"team": "a"} }, method: rollout.Live, description: "pod.metadata"},
	{field: "pod.nodeLossTolerationSeconds", name: "less", to: func(s *v1beta1.MemcachedSpec) { s.Pod.NodeLossTolerationSeconds = new(int32(10)) }, method: rollout.Live, description: "pod.nodeLossTolerationSeconds none → 10"},
	{field: "pod.nodeSelector", name: "a label", to: func(s *v1beta1.MemcachedSpec) { s.Pod.Scheduling.NodeSelector = map[string]string{"disk": "fast"} }, method: rollout.Replace},
	{field: "pod.tolerations", name: "added", to: func(s *v1beta1.MemcachedSpec) { s.Pod.Scheduling.Tolerations = []corev1.Toleration{{Key: "cache"}} }, method: rollout.Replace},
	{field: "pod.affinity", name: "added", to: func(s *v1beta1.MemcachedSpec) {
		s.Pod.Scheduling.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	}, method: rollout.Replace},
	{field: "pod.topologySpreadConstraints", name: "added", to: func(s *v1beta1.MemcachedSpec) {
		s.Pod.Scheduling.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1}}
	}, method: rollout.Replace},
	{field: "pod.priorityClassName", name: "another", to: func(s *v1beta1.MemcachedSpec) { s.Pod.Scheduling.PriorityClassName = "high" }, method: rollout.Replace,
		description: "pod.priorityClassName none → high, which starts it empty"},
	{field: "pod.serviceAccountName", name: "another", to: func(s *v1beta1.MemcachedSpec) { s.Pod.ServiceAccountName = "cache" }, method: rollout.Replace},
	{field: "pod.securityContext", name: "user", to: func(s *v1beta1.MemcachedSpec) { s.Pod.SecurityContext.RunAsUser = new(int64(1000)) }, method: rollout.Replace},
}

func tls(tls v1beta1.TLSSpec) shardtest.Edit {
	return func(s *v1beta1.MemcachedSpec) { s.TLS = tls }
}

func TestPodWithoutTheSecretIsReplaced(t *testing.T) {
	from, to := podRevision(t, tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired})), podRevision(t, tls(v1beta1.TLSSpec{Mode: v1beta1.TLSRequired, SecretName: "other"}))
	if c := changeOf(facts{from: from, to: to, handsOver: true}); c.Method != rollout.Replace || !c.HandsOver {
		t.Errorf("%+v, want a replacement that hands over", c)
	}
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}
	in, pod := Inputs{Memcached: m}, &corev1.Pod{}
	if in.mountsSecrets(pod, to) || !in.mountsSecrets(pod, podRevision(t, nil)) {
		t.Error("a pod without a Secret has the certificate of a revision exactly if that requires none")
	}
	shardtest.MountTLS(pod, "cache-tls")
	if !in.mountsSecrets(pod, from) || in.mountsSecrets(pod, to) {
		t.Error("the name of the Secret doesn't decide")
	}
}

func TestChangeHasTheMethodOfItsField(t *testing.T) {
	for _, c := range changes {
		t.Run(c.field+" "+c.name, func(t *testing.T) {
			from, to := podRevision(t, c.from), podRevision(t, c.to)
			got := changeOf(facts{from: from, to: to, crossSeries: true, mountsSecrets: !c.lacksSecret,
				resize: resizeBetween(from.Resources, to.Resources, ptr.Deref(c.can, resources.ResizeAll))})
			if got.Method != c.method || got.Resize != c.resize {
				t.Errorf("method %s with resize %s, want %s and %s", got.Method, got.Resize, c.method, c.resize)
			}
			if c.description != "" && got.Description != c.description {
				t.Errorf("description %q, want %q", got.Description, c.description)
			}
			switch isEqual := from.Hash() == to.Hash(); {
			case isEqual && got != (rollout.Change{}):
				t.Errorf("same revision, but the change is %+v", got)
			case !isEqual && from.Image == to.Image && !strings.HasPrefix(got.Description, c.field):
				t.Errorf("%s isn't a field of a revision: %q", c.field, got.Description)
			}
			if same := changeOf(facts{from: to, to: to, handsOver: true}); same != (rollout.Change{}) {
				t.Errorf("the change from a revision to itself is %+v", same)
			}
		})
	}
}

func TestChangeWaitsForUsersThatCanBeRead(t *testing.T) {
	auth := podRevision(t, func(s *v1beta1.MemcachedSpec) { s.Auth = v1beta1.AuthSpec{Mode: v1beta1.AuthRequired} })
	secrets := &agentwire.Secrets{Users: agentwire.Users{Error: "there are no users"}, Certificate: agentwire.Certificate{Error: "there is no certificate"}}
	if c := changeOf(facts{from: podRevision(t), to: auth, mountsSecrets: true, secrets: secrets}); c.SecretError != "there are no users" {
		t.Errorf("%+v", c)
	}
	if c := changeOf(facts{from: auth, to: auth, mountsSecrets: true, secrets: secrets}); c.SecretError != "" {
		t.Errorf("a pod that already uses them: %+v", c)
	}
}

// methodNames are the names of the methods in docs/changes.md.
var methodNames = map[string]rollout.Method{
	"no shard is changed": rollout.None, "live": rollout.Live, "restart": rollout.Restart, "recreate": rollout.Recreate, "**replace**": rollout.Replace,
}

// fieldsOf returns the JSON names of a type's fields; instead of a group, those of its fields.
func fieldsOf(kind reflect.Type, prefix string, groups ...string) (names []string) {
	for f := range kind.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "": // inline
			names = append(names, fieldsOf(f.Type, prefix)...)
		case slices.Contains(groups, name):
			names = append(names, fieldsOf(f.Type, name+".")...)
		default:
			names = append(names, prefix+name)
		}
	}
	return names
}

// The page has a row for each field of the spec, and the changes an example for each method of the row and for no other.
func TestChangesPageHasTheTableOfFields(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "changes.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]map[rollout.Method]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| (.+) \\| .+ \\|$").FindAllStringSubmatch(string(raw), -1) {
		documented[row[1]] = map[rollout.Method]bool{}
		for name := range strings.SplitSeq(row[2], ", or ") {
			method, ok := methodNames[name]
			if documented[row[1]][method] = true; !ok {
				t.Errorf("%s has the unknown method %s", row[1], name)
			}
		}
	}
	for _, name := range fieldsOf(reflect.TypeFor[v1beta1.MemcachedSpec](), "", "config", "pod", "access", "backup") {
		seen := map[rollout.Method]bool{}
		for _, c := range changes {
			if c.field == name && (c.method != rollout.None || documented[name][rollout.None]) { // an equivalent value changes nothing, in any field
				seen[c.method] = true
			}
		}
		if !maps.Equal(seen, documented[name]) {
			t.Errorf("%s has the methods %v, and in the document %v", name, seen, documented[name])
		}
		delete(documented, name)
	}
	if len(documented) > 0 {
		t.Errorf("the spec has no field of %v", documented)
	}
}

func TestChangeOfSeveralFieldsHasTheMostDisruptiveMethod(t *testing.T) {
	label := func(s *v1beta1.MemcachedSpec) { s.Pod.Metadata.Labels = map[string]string{"team": "a"} }
	from := podRevision(t, version("1.6.38"))
	for _, c := range []struct {
		name        string
		to          shardtest.Edit
		method      rollout.Method
		description string
	}{
		{"a label and threads", all(version("1.6.38"), label, func(s *v1beta1.MemcachedSpec) { s.Config.Threads = ptr.To[int32](2) }), rollout.Restart, "config.threads 4 → 2, pod.metadata"},
		{"a label, maxConnections and a version", all(version("1.6.45"), label, maxConnections(2048)), rollout.Recreate, "1.6.38 → 1.6.45, config.maxConnections 1024 → 2048, pod.metadata"},
		{"the same and memory", all(version("1.6.45"), label, maxConnections(2048), memory("1Gi")), rollout.Replace,
			"1.6.38 → 1.6.45, memory 64Mi → 1Gi, config.maxConnections 1024 → 2048, pod.metadata, which starts it empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := podRevision(t, c.to)
			got := changeOf(facts{from: from, to: to, mountsSecrets: true, resize: resizeBetween(from.Resources, to.Resources, resources.ResizeAll)})
			if got.Method != c.method || got.Description != c.description {
				t.Errorf("%s: %q, want %s: %q", got.Method, got.Description, c.method, c.description)
			}
			if needsResize := got.Resize == rollout.Needed; needsResize != (c.method == rollout.Recreate) {
				t.Errorf("resize %s", got.Resize)
			}
		})
	}
}

// The agent reports the running version: a tag may lack a version, or name another one.
func TestCrossSeriesUpgradeIsForbiddenUnlessAllowed(t *testing.T) {
	for _, c := range []struct {
		name, from, running, to string
		crossSeries             bool
		method                  rollout.Method
		forbidden               bool
	}{
		{"by the tags", "memcached:1.6.45", "", "memcached:1.7.0", false, rollout.Replace, true},
		{"by the tags, downgrade", "memcached:1.7.0", "", "memcached:1.6.45", false, rollout.Replace, true},
		{"allowed", "memcached:1.6.45", "", "memcached:1.7.0", true, rollout.Replace, false},
		{"by the running version", "memcached:latest", "1.6.45", "memcached:1.7.0", false, rollout.Replace, true},
		{"the running version isn't the tag's", "memcached:1.6.45", "1.7.0", "memcached:1.7.1", false, rollout.Recreate, false},
		{"unknown running version", "memcached:latest", "", "memcached:1.7.0", false, rollout.Recreate, false},
		{"to an unknown version", "memcached:1.6.45", "1.6.45", "memcached:latest", false, rollout.Recreate, false},
		{"1.10 is not 1.1", "memcached:1.10.1", "", "memcached:1.1.1", false, rollout.Replace, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := changeOf(facts{from: podRevision(t, image(c.from)), to: podRevision(t, image(c.to)), version: c.running, crossSeries: c.crossSeries, mountsSecrets: true})
			if got.Method != c.method || (got.Forbidden != "") != c.forbidden {
				t.Errorf("method %s, forbidden: %q", got.Method, got.Forbidden)
			}
		})
	}
}
