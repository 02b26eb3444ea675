package hostile

import (
	"fmt"
	"runtime"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

// condition is one way in which a platform interferes with pods, and what a user states in a Memcached on such a platform.
type condition struct {
	name string
	// objects of the condition in a namespace.
	objects func(site) []client.Object
	// seen is what the dry run of a pod returns, as the pod or as the error, once the condition is in force.
	seen string
	user suite.Change
	// repository of memcached, by default that of the operator.
	repository string
	// Of conditions of the same kind, a walk has one.
	kind string
	// Rejects: new pods are rejected for a while before each step.
	rejects bool
}

// conditions are created in this order.
var conditions = []condition{
	{name: "sidecar-last", seen: "injected-last",
		objects: func(s site) []client.Object { return s.adds("/spec/containers/-", sidecar("injected-last")) }},
	{name: "sidecar-first", seen: "injected-first",
		objects: func(s site) []client.Object { return s.adds("/spec/containers/0", sidecar("injected-first")) }},
	{name: "sidecar-native", seen: "injected-native",
		objects: func(s site) []client.Object { return s.initContainer(native(sidecar("injected-native"))) }},
	{name: "init-container", seen: "injected-init",
		objects: func(s site) []client.Object { return s.initContainer(exits(sidecar("injected-init"))) }},
	{name: "volume-and-variable", seen: "/injected",
		objects: func(s site) []client.Object { return s.applies(injectedVolume) }},
	{name: "labels", seen: "needs the label team",
		objects: func(s site) []client.Object {
			return append(s.denies(pods, "has(object.metadata.labels) && 'team' in object.metadata.labels", "needs the label team"),
				s.denies(templates, "has(object.spec.template.metadata.labels) && 'team' in object.spec.template.metadata.labels", "a template needs the label team")...)
		},
		user: func(spec *v1beta1.MemcachedSpec) { spec.Pod.Metadata.Labels = map[string]string{"team": "shop"} }},
	{name: "annotations", seen: "needs the annotation cost-center",
		objects: func(s site) []client.Object {
			return s.denies(pods, "has(object.metadata.annotations) && 'cost-center' in object.metadata.annotations", "needs the annotation cost-center")
		},
		user: func(spec *v1beta1.MemcachedSpec) {
			spec.Pod.Metadata.Annotations = map[string]string{"cost-center": "42"}
		}},
	{name: "placement", seen: "belongs on the nodes of caches",
		objects: func(s site) []client.Object {
			return append(s.denies(pods, placed, "belongs on the nodes of caches"), priorityClass(ofCaches, false))
		},
		user: func(spec *v1beta1.MemcachedSpec) {
			spec.Pod.NodeSelector = map[string]string{corev1.LabelArchStable: runtime.GOARCH}
			spec.Pod.Tolerations = []corev1.Toleration{{Key: "caches", Operator: corev1.TolerationOpExists}}
			spec.Pod.PriorityClassName = ofCaches
		}},
	{name: "default-priority", seen: ofAllPods,
		objects: func(site) []client.Object { return []client.Object{priorityClass(ofAllPods, true)} }},
	{name: "hardened", seen: "is not hardened",
		objects: func(s site) []client.Object { return s.denies(pods, hardened, "is not hardened") },
		user:    amounts},
	{name: "no-search-domains", seen: `"dnsPolicy":"None"`,
		objects: func(s site) []client.Object {
			return append(s.adds("/spec/dnsPolicy", "None"), s.adds("/spec/dnsConfig", corev1.PodDNSConfig{
				Nameservers: []string{s.nameserver}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("1")}},
			})...)
		}},
	{name: "image-name", kind: "image", seen: "mirror.example", repository: onlyByMirror,
		objects: func(s site) []client.Object { return s.applies(images(byName)) }},
	{name: "image-name-on-update", kind: "image", seen: "mirror.example", repository: onlyByMirror,
		objects: func(s site) []client.Object { return s.applies(images(byName), admissionv1.Update) }},
	{name: "image-digest", kind: "image", seen: "@sha256:",
		objects: func(s site) []client.Object { return s.applies(images(s.byDigest())) }},
	{name: "limits-minimum", user: amounts,
		objects: func(s site) []client.Object {
			return s.limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Min: amount("20m", "64Mi", "16Mi")},
				corev1.LimitRangeItem{Type: corev1.LimitTypePod, Min: amount("20m", "64Mi", "16Mi")})
		}},
	{name: "limits-maximum", user: amounts,
		objects: func(s site) []client.Object {
			return s.limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Max: amount("600m", "256Mi", "128Mi")},
				corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: amount("1", "512Mi", "256Mi")})
		}},
	{name: "limits-ratio", user: amounts,
		objects: func(s site) []client.Object {
			return s.limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: amount("25", "1", "1")})
		}},
	{name: "limits-default",
		objects: func(s site) []client.Object {
			return s.limits(corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, Default: amount("500m", "200Mi", "64Mi"), DefaultRequest: amount("20m", "64Mi", "16Mi")})
		}},
	{name: "quota", user: amounts,
		objects: func(s site) []client.Object {
			return []client.Object{s.quota(corev1.ResourceList{
				corev1.ResourceRequestsCPU: q("8"), corev1.ResourceLimitsCPU: q("16"), corev1.ResourceRequestsMemory: q("8Gi"), corev1.ResourceLimitsMemory: q("8Gi"),
				corev1.ResourceRequestsEphemeralStorage: q("4Gi"), corev1.ResourceLimitsEphemeralStorage: q("4Gi"), "count/jobs.batch": q("20"),
			})}
		}},
	{name: "rejected-for-a-while", rejects: true,
		objects: func(s site) []client.Object {
			return []client.Object{s.quota(corev1.ResourceList{corev1.ResourcePods: q("50")})}
		}},
}

const (
	ofCaches  = "hostile-caches"
	ofAllPods = "hostile-default"
	// onlyByMirror is a repository from which nodes can't pull.
	onlyByMirror = "upstream.example/only-by-mirror/memcached"

	placed = `object.spec.?tolerations.orValue([]).exists(t, t.?key.orValue('') == 'caches') &&
		object.spec.?nodeSelector[?'` + corev1.LabelArchStable + `'].orValue('') != '' && object.spec.?priorityClassName.orValue('') == '` + ofCaches + `'`

	hardened = `object.spec.?automountServiceAccountToken.orValue(true) == false && (object.spec.containers + object.spec.?initContainers.orValue([])).all(c,
		c.?securityContext.readOnlyRootFilesystem.orValue(false) && !c.image.endsWith(':latest') && c.?resources.limits[?'memory'].hasValue() &&
		c.?resources.requests[?'memory'].hasValue() && c.?resources.requests[?'cpu'].hasValue())`

	byName = `c.image.replace('upstream.example/only-by-mirror/', 'mirror.example/library/').replace('docker.io/', 'mirror.example/').replace('ghcr.io/', 'mirror.example/')`

	injectedVolume = `Object{spec: Object.spec{
		volumes: [Object.spec.volumes{name: 'injected', emptyDir: Object.spec.volumes.emptyDir{}}],
		containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
			env: [Object.spec.containers.env{name: 'INJECTED', value: 'true'}],
			volumeMounts: [Object.spec.containers.volumeMounts{name: 'injected', mountPath: '/injected'}]})}}`
)

// images is a configuration that has other images for all containers c.
func images(of string) string {
	return `Object{spec: Object.spec{
		containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: ` + of + `}),
		initContainers: object.spec.?initContainers.orValue([]).map(c, Object.spec.initContainers{name: c.name, image: ` + of + `})}}`
}

// amounts are what a user states where each container needs all of them.
func amounts(spec *v1beta1.MemcachedSpec) {
	spec.Resources = &v1beta1.ResourceRequirements{Requests: amount("20m", "190Mi", "64Mi"), Limits: amount("500m", "190Mi", "64Mi")}
}

func amount(cpu, memory, storage string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: q(cpu), corev1.ResourceMemory: q(memory), corev1.ResourceEphemeralStorage: q(storage)}
}

func q(quantity string) resource.Quantity { return resource.MustParse(quantity) }

// sidecar is a container that runs until it gets SIGTERM, and that passes all conditions.
func sidecar(name string) corev1.Container {
	return corev1.Container{
		Name: name, Image: "docker.io/library/busybox:1", Command: []string{"sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait"},
		Resources: corev1.ResourceRequirements{Requests: amount("20m", "64Mi", "16Mi"), Limits: amount("100m", "64Mi", "16Mi")},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

func native(c corev1.Container) corev1.Container {
	c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	return c
}

func exits(c corev1.Container) corev1.Container {
	c.Command = []string{"sh", "-c", "exit 0"}
	return c
}

// priorityClass is shared by all walks.
func priorityClass(name string, isDefault bool) client.Object {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1, GlobalDefault: isDefault, PreemptionPolicy: new(corev1.PreemptNever)}
}

func (s site) limits(items ...corev1.LimitRangeItem) []client.Object {
	return []client.Object{&corev1.LimitRange{ObjectMeta: s.meta(), Spec: corev1.LimitRangeSpec{Limits: items}}}
}

func (s site) quota(hard corev1.ResourceList) client.Object {
	return &corev1.ResourceQuota{ObjectMeta: s.meta(), Spec: corev1.ResourceQuotaSpec{Hard: hard}}
}

// byDigest is the image of a container c with the digest of the versions of memcached.
func (s site) byDigest() string {
	expression := "c.image"
	for version, digest := range s.digests {
		expression = fmt.Sprintf("c.image.endsWith('library/memcached:%s') ? '%s' : %s", version, digest, expression)
	}
	return "(" + expression + ")"
}
