package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// This file says what a spec means, as its fields are documented. It calls none of the operator's
// functions: a check that did would agree with their mistakes.

// desired returns the part of a spec that concerns pods, with the complete reference of its image.
// It removes the other fields, so that a new field of the spec concerns pods unless it is added
// here.
func (w *World) desired(m *v1beta1.Memcached) v1beta1.MemcachedSpec {
	spec := *m.Spec.DeepCopy()
	spec.Pod.Image = w.imageOf(&spec)
	spec.Version, spec.Size, spec.Paused, spec.DeletionPolicy = "", nil, false, ""
	spec.UpdateStrategy, spec.Backup, spec.Access, spec.Scaling = v1beta1.UpdateStrategy{}, v1beta1.BackupPolicy{}, v1beta1.MemcachedAccess{}, v1beta1.ScalingSpec{}
	return spec
}

// imageOf returns the image that a spec names: what it omits is that of the operator's default.
func (w *World) imageOf(spec *v1beta1.MemcachedSpec) string {
	colon := strings.LastIndex(w.defaultImage, ":")
	image, version := spec.Pod.Image, spec.Version
	if image == "" {
		image = w.defaultImage[:colon]
	}
	if version == "" {
		version = w.defaultImage[colon+1:]
	}
	if name := image[strings.LastIndex(image, "/")+1:]; strings.ContainsAny(name, ":@") {
		return image
	}
	return image + ":" + version
}

// wrongArguments returns what memcached's arguments, as JSON, have against a spec; empty if
// nothing.
func wrongArguments(text string, spec *v1beta1.MemcachedSpec) string {
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return err.Error()
	}
	want := map[string]string{
		"-p": "11211", "-U": "0",
		"-m": "", "-I": strconv.FormatInt(spec.Config.MaxItemSize.Value(), 10),
		"-c": strconv.Itoa(int(*spec.Config.MaxConnections)), "-t": strconv.Itoa(int(*spec.Config.Threads)),
	}
	own := min(2*len(want), len(words))
	have := map[string]string{}
	for pair := range slices.Chunk(words[:own], 2) {
		have[pair[0]] = pair[len(pair)-1]
	}
	// The pages that memcached assigns to its chunk sizes come on top of the memory for items.
	if given, err := strconv.ParseInt(have["-m"], 10, 64); err == nil {
		pages := min(max(given-spec.Memory.Value()>>20, 1), 63)
		want["-m"] = strconv.FormatInt(spec.Memory.Value()>>20+pages, 10)
	}
	others := slices.Concat(spec.Config.ExtraArgs, securityArguments(spec))
	if !maps.Equal(have, want) || !slices.Equal(words[own:], others) {
		return fmt.Sprintf("%s, not %v and %q", text, want, others)
	}
	return ""
}

// securityArguments returns memcached's arguments for TLS and logins.
func securityArguments(spec *v1beta1.MemcachedSpec) (words []string) {
	if tls := spec.TLS; tls.IsEnabled() {
		words = append(words, "-Z")
		if tls.Mode == "Permissive" {
			words = append(words, "-l", "*:11211", "-l", "notls:*:11211")
		}
		var options []string
		if tls.MinTLSVersion == "VersionTLS13" {
			options = append(options, "ssl_min_version=3")
		}
		if verify := map[v1beta1.ClientCertificates]string{"Optional": "1", "Required": "2"}[tls.ClientCertificates]; verify != "" {
			options = append(options, "ssl_verify_mode="+verify, "ssl_session_cache")
		}
		if options != nil {
			words = append(words, "-o", strings.Join(options, ","))
		}
	}
	if spec.Auth.IsRequired() {
		words = append(words, "-Y", "users")
	}
	return words
}

// desiredResources returns the resources of a spec with its defaults. The memory limit by default
// is that of have if it differs by rounding only.
func desiredResources(spec *v1beta1.MemcachedSpec, have corev1.ResourceRequirements) corev1.ResourceRequirements {
	want := corev1.ResourceRequirements{Limits: corev1.ResourceList{}, Requests: corev1.ResourceList{}}
	if r := spec.Resources; r != nil {
		maps.Copy(want.Limits, r.Limits)
		maps.Copy(want.Requests, r.Requests)
	}
	setDefault := func(list corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if _, ok := list[name]; !ok {
			list[name] = q
		}
	}
	perConnection := 8.0 * 1024
	if spec.TLS.IsEnabled() {
		perConnection = 32 * 1024
		if spec.TLS.Mode == "Permissive" { // the agent has connections of its own
			perConnection = 56 * 1024
		}
	}
	limit := 1.10*float64(spec.Memory.Value()) + 80<<20 + perConnection*float64(*spec.Config.MaxConnections)
	if math.Abs(have.Limits.Memory().AsApproximateFloat64()-limit) < 256 {
		limit = have.Limits.Memory().AsApproximateFloat64()
	}
	limit = max(limit, want.Requests.Memory().AsApproximateFloat64())
	setDefault(want.Limits, corev1.ResourceMemory, *resource.NewQuantity(int64(limit), resource.BinarySI))
	setDefault(want.Requests, corev1.ResourceMemory, want.Limits[corev1.ResourceMemory])
	if cpu, ok := want.Limits[corev1.ResourceCPU]; ok {
		setDefault(want.Requests, corev1.ResourceCPU, cpu)
	}
	setDefault(want.Requests, corev1.ResourceCPU, resource.MustParse("100m"))
	return want
}

// withoutOwnTerms removes the nodes on which the agent's image runs from the required ones.
func withoutOwnTerms(nodes *corev1.NodeAffinity) {
	if nodes == nil || nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	terms := nodes.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = slices.DeleteFunc(terms[i].MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelArchStable || r.Key == corev1.LabelOSStable
		})
	}
	if len(terms) == 1 && len(terms[0].MatchExpressions)+len(terms[0].MatchFields) == 0 {
		nodes.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

// wrongTemplate returns what a ReplicaSet's template has against a spec; empty if nothing.
func wrongTemplate(set *appsv1.ReplicaSet, spec *v1beta1.MemcachedSpec) string {
	t := &set.Spec.Template
	c := simtest.ContainerOf(&t.Spec)
	var noted v1beta1.MemcachedSpec
	if err := json.Unmarshal([]byte(t.Annotations[annotations.Spec]), &noted); err != nil {
		return err.Error()
	}
	if c == nil {
		return "no container"
	}
	affinity := corev1.Affinity{}
	if t.Spec.Affinity != nil {
		affinity = *t.Spec.Affinity.DeepCopy()
	}
	want := corev1.Affinity{}
	if spec.Pod.Scheduling.Affinity != nil {
		want = *spec.Pod.Scheduling.Affinity.DeepCopy()
	}
	if want.PodAntiAffinity == nil && spec.Pod.Scheduling.TopologySpreadConstraints == nil {
		if a := affinity.PodAntiAffinity; a == nil || len(a.PreferredDuringSchedulingIgnoredDuringExecution) != 2 {
			return "nothing that spreads the shards"
		}
		affinity.PodAntiAffinity = nil
	}
	nodes := affinity.NodeAffinity
	if nodes == nil || nodes.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return "nodes on which the agent's image doesn't run"
	}
	withoutOwnTerms(nodes)
	withoutOwnTerms(want.NodeAffinity)
	if want.NodeAffinity == nil {
		affinity.NodeAffinity = nil
	}
	tolerations := slices.DeleteFunc(slices.Clone(t.Spec.Tolerations), func(t corev1.Toleration) bool { // the operator's own
		return (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) && t.TolerationSeconds != nil &&
			!slices.ContainsFunc(spec.Pod.Scheduling.Tolerations, func(of corev1.Toleration) bool { return equality.Semantic.DeepEqual(of, t) })
	})
	constraints := slices.Clone(spec.Pod.Scheduling.TopologySpreadConstraints)
	for i := range min(len(constraints), len(t.Spec.TopologySpreadConstraints)) {
		if constraints[i].LabelSelector == nil { // the operator selects the shards
			constraints[i].LabelSelector = t.Spec.TopologySpreadConstraints[i].LabelSelector
		}
	}
	for field, pair := range map[string][2]any{
		"the annotated spec":           {noted, *spec},
		"image":                        {c.Image, spec.Pod.Image},
		"imagePullSecrets":             {t.Spec.ImagePullSecrets, spec.Pod.ImagePullSecrets},
		"resources.limits":             {c.Resources.Limits, desiredResources(spec, c.Resources).Limits},
		"resources.requests":           {c.Resources.Requests, desiredResources(spec, c.Resources).Requests},
		"nodeSelector":                 {t.Spec.NodeSelector, spec.Pod.Scheduling.NodeSelector},
		"tolerations":                  {tolerations, spec.Pod.Scheduling.Tolerations},
		"affinity":                     {affinity, want},
		"topologySpreadConstraints":    {t.Spec.TopologySpreadConstraints, constraints},
		"priorityClassName":            {t.Spec.PriorityClassName, spec.Pod.Scheduling.PriorityClassName},
		"serviceAccountName":           {t.Spec.ServiceAccountName, spec.Pod.ServiceAccountName},
		"runAsUser":                    {*t.Spec.SecurityContext.RunAsUser, ptr.Deref(spec.Pod.SecurityContext.RunAsUser, 11211)},
		"the labels of the user":       {contains(t.Labels, spec.Pod.Metadata.Labels), true},
		"the annotations of the user":  {contains(t.Annotations, spec.Pod.Metadata.Annotations), true},
		"the arguments' contradiction": {wrongArguments(t.Annotations[annotations.Arguments], spec), ""},
		"imagePullPolicy":              {spec.Pod.ImagePullPolicy == "" || c.ImagePullPolicy == spec.Pod.ImagePullPolicy, true},
	} {
		if !equality.Semantic.DeepEqual(pair[0], pair[1]) {
			return fmt.Sprintf("%s: %+v, not %+v", field, pair[0], pair[1])
		}
	}
	return ""
}
