package transfer

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// platform is a Memcached with all that a platform may require of pods.
func platform() *v1beta1.Memcached {
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache"}}
	m.Spec = v1beta1.MemcachedSpec{Size: ptr.To[int32](1), Memory: ptr.To(resource.MustParse("64Mi")),
		Resources: &v1beta1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("2")}}}
	m.Spec.Config = v1beta1.MemcachedConfig{MaxConnections: ptr.To[int32](1024), Threads: ptr.To[int32](4), MaxItemSize: ptr.To(resource.MustParse("1Mi"))}
	requirement := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	m.Spec.Pod = v1beta1.MemcachedPod{
		Metadata: v1beta1.Metadata{Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"sidecar.istio.io/inject": "false",
			"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "none", "cluster-autoscaler.kubernetes.io/safe-to-evict": "yes", annotations.Revision: "other"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "mirror"}},
		Scheduling: v1beta1.Scheduling{
			NodeSelector:      map[string]string{"pool": "caches"},
			Tolerations:       []corev1.Toleration{{Key: "pool", Value: "caches"}},
			PriorityClassName: "caches",
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{requirement("a"), {}, requirement("b")}},
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: requirement("c")}},
				},
				PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}}},
			},
		},
		ServiceAccountName: "cache",
	}
	return m
}

// podsOfOperator returns each kind of pod that the operator causes for a Memcached.
func podsOfOperator(t *testing.T, m *v1beta1.Memcached) map[string]corev1.PodTemplateSpec {
	t.Helper()
	parsed := func(from any) (pod corev1.PodTemplateSpec) {
		raw, err := yaml.Marshal(from)
		if err == nil {
			err = yaml.Unmarshal(raw, &pod)
		}
		if err != nil {
			t.Fatal(err)
		}
		return pod
	}
	revision := resources.NewPodRevision(&m.Spec, resources.Image{Reference: "memcached:1.6.45", Version: "1.6.45"})
	build := resources.NewBuilder(m, resources.Options{AgentImage: "agent"})
	pods := map[string]corev1.PodTemplateSpec{}
	for _, d := range build.Desired([]resources.Shard{{Revision: revision}}) {
		o := build.Build(d)
		if set, ok := o.Apply.(*appsv1ac.ReplicaSetApplyConfiguration); ok {
			pods["shard"] = parsed(set.Spec.Template)
		}
	}
	shard := pods["shard"]
	pods["preflight"] = parsed(build.PreflightPod(&corev1.Pod{ObjectMeta: shard.ObjectMeta, Spec: shard.Spec}, revision, "").Apply.(*corev1ac.PodApplyConfiguration))
	for _, action := range []snapshotwire.Action{snapshotwire.ActionSave, snapshotwire.ActionLoad, snapshotwire.ActionDelete} {
		for name, store := range map[string]v1beta1.SnapshotStore{" claim": claim, " S3": s3} {
			job := Options{}.Job(JobSpec{Prefix: Backup, Owner: owner, Store: store, Action: action, Basis: resources.BasisOf(&m.Spec)})
			pods[string(action)+name] = job.Spec.Template
			if !maps.Equal(job.Labels, job.Spec.Template.Labels) {
				t.Errorf("the Job to %s has the labels %v", action, job.Labels)
			}
		}
	}
	return pods
}

// What a platform requires of the shards' pods, it requires of all others.
func TestEveryPodOfTheOperatorHasWhatItsUserSets(t *testing.T) {
	pods := podsOfOperator(t, platform())
	if len(pods) != 8 {
		t.Fatalf("%d kinds of pods", len(pods))
	}
	platformTerms := []corev1.NodeSelectorRequirement{{Key: "kubernetes.io/arch", Operator: "In", Values: []string{"amd64", "arm64"}}, {Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux"}}}
	of := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: append([]corev1.NodeSelectorRequirement{{Key: key, Operator: "Exists"}}, platformTerms...)}
	}
	for name, pod := range pods {
		t.Run(name, func(t *testing.T) {
			nodes := pod.Spec.Affinity.NodeAffinity
			for what, pair := range map[string][2]any{
				"the user's label":      {pod.Labels["team"], "shop"},
				"the user's annotation": {pod.Annotations["sidecar.istio.io/inject"], "false"},
				"the operator's label":  {pod.Labels[v1beta1.LabelManagedBy], v1beta1.ManagedByValue},
				"pull secrets":          {pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "mirror"}}},
				"node selector":         {pod.Spec.NodeSelector, map[string]string{"pool": "caches"}},
				"priority class":        {pod.Spec.PriorityClassName, "caches"},
				"service account":       {pod.Spec.ServiceAccountName, "cache"},
				"token":                 {pod.Spec.AutomountServiceAccountToken, new(false)},
				"service links":         {pod.Spec.EnableServiceLinks, new(false)},
				"toleration":            {slices.Contains(pod.Spec.Tolerations, corev1.Toleration{Key: "pool", Value: "caches"}), true},
				"required nodes":        {nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms, []corev1.NodeSelectorTerm{of("a"), {}, of("b")}},
				"preferred nodes":       {len(nodes.PreferredDuringSchedulingIgnoredDuringExecution), 1},
			} {
				if diff := cmp.Diff(pair[1], pair[0]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			if isJob := pod.Annotations[annotations.TransferOf] != ""; isJob == (pod.Annotations[annotations.Revision] != "other") {
				t.Errorf("the user's annotations replace the operator's: %v", pod.Annotations)
			}
			if probe := pod.Spec.Containers[0].ReadinessProbe; name != "shard" && (probe == nil || probe.InitialDelaySeconds < 7*24*3600) {
				t.Errorf("a Service of the user that selects the pod sends clients to it: %+v", probe)
			}
			if isShard := name == "shard"; isShard != (pod.Spec.Affinity.PodAffinity != nil) {
				t.Error("only shards have the affinity to other pods")
			}
		})
	}
	for name, pod := range podsOfOperator(t, func() *v1beta1.Memcached { m := platform(); m.Spec.Pod = v1beta1.MemcachedPod{}; return m }()) {
		want := []corev1.NodeSelectorTerm{{MatchExpressions: platformTerms}}
		if diff := cmp.Diff(want, pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); diff != "" {
			t.Errorf("%s without an affinity (-want +got):\n%s", name, diff)
		}
	}
	for name, job := range map[string]JobSpec{
		"a Job without a Memcached":                {Prefix: Delete, Owner: owner, Store: claim, Action: snapshotwire.ActionDelete},
		"a store with a ServiceAccount of its own": {Prefix: Delete, Owner: owner, Action: snapshotwire.ActionDelete, Basis: resources.BasisOf(&platform().Spec), Store: v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "b00", ServiceAccountName: "snapshots"}}},
	} {
		want := ""
		if job.Store.S3 != nil {
			want = "snapshots"
		}
		if got := (Options{}).Job(job).Spec.Template.Spec.ServiceAccountName; got != want {
			t.Errorf("%s: account %q, want %q", name, got, want)
		}
	}
}
