package resources

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/clusterdns"
)

// Kind of an object that the operator creates.
type Kind string

// The kinds, as in the Kubernetes API. Pods are those of preflight checks.
const (
	KindNetworkPolicy       Kind = "NetworkPolicy"
	KindPod                 Kind = "Pod"
	KindPodDisruptionBudget Kind = "PodDisruptionBudget"
	KindReplicaSet          Kind = "ReplicaSet"
	KindSecret              Kind = "Secret"
	KindService             Kind = "Service"
)

// Key names an object within the namespace of its Memcached.
type Key struct {
	Kind Kind
	Name string
}

func (k Key) String() string { return fmt.Sprintf("%s %s", k.Kind, k.Name) }

// JoinKeys lists objects in a message.
func JoinKeys(keys []Key) string {
	words := make([]string, len(keys))
	for i, key := range keys {
		words[i] = key.String()
	}
	return strings.Join(words, ", ")
}

// Ordinal returns the ordinal of the shard that an object of a Memcached belongs to; false if it belongs to none, or isn't
// of that Memcached.
func (k Key) Ordinal(memcached string) (int, bool) {
	name := k.Name
	if k.Kind == KindService {
		name = strings.TrimSuffix(name, externalSuffix)
	}
	return Ordinal(memcached, name)
}

// HeadlessKey returns the key of the Service whose DNS name resolves to all shards.
func HeadlessKey(m *v1beta1.Memcached) Key { return Key{KindService, m.Name} }

// DiscoveryName returns the name of the Service with the endpoint of spec.access.discovery.
func DiscoveryName(memcached string) string { return memcached + "-discovery" }

// externalSuffix of a Service's name. It fits behind the longest name of a shard: 63 characters are valid, and 56 are used.
const externalSuffix = "-ext"

// ExternalKey returns the key of the Service through which clients outside the cluster reach a shard.
func ExternalKey(shard string) Key { return Key{KindService, shard + externalSuffix} }

// IsExternal reports whether each shard of a Memcached has such a Service.
func IsExternal(m *v1beta1.Memcached) bool {
	return m.Spec.Access.External.Mode == v1beta1.ExternalLoadBalancer
}

// Keys returns the keys of the objects that a Memcached should have, in the order of their creation:
// policies and Services before the shards that need them.
func Keys(m *v1beta1.Memcached) []Key {
	size := SizesOf(m).Exist
	keys := make([]Key, 0, 4+3*size)
	if hasNetworkPolicy(m) {
		keys = append(keys, Key{KindNetworkPolicy, m.Name})
	}
	keys = append(keys, HeadlessKey(m))
	if m.Spec.Access.Discovery.IsEnabled() {
		keys = append(keys, Key{KindService, DiscoveryName(m.Name)})
	}
	keys = append(keys, Key{KindPodDisruptionBudget, m.Name})
	for ordinal := range size {
		shard := ShardName(m.Name, ordinal)
		keys = append(keys, Key{KindService, shard})
		if IsExternal(m) {
			keys = append(keys, ExternalKey(shard))
		}
		keys = append(keys, Key{KindReplicaSet, shard})
	}
	return keys
}

// IsDisabled reports whether a Memcached's spec disables an object.
func IsDisabled(m *v1beta1.Memcached, key Key) bool {
	switch {
	case key.Kind == KindNetworkPolicy:
		return key.Name == m.Name && !hasNetworkPolicy(m)
	case key.Kind != KindService:
		return false
	case key.Name == DiscoveryName(m.Name):
		return !m.Spec.Access.Discovery.IsEnabled()
	default:
		_, isShards := key.Ordinal(m.Name)
		return isShards && strings.HasSuffix(key.Name, externalSuffix) && !IsExternal(m)
	}
}

func hasNetworkPolicy(m *v1beta1.Memcached) bool {
	return m.Spec.Access.NetworkPolicy.Mode != v1beta1.NetworkPolicyDisabled
}

// ShardName returns the name of a shard, its ReplicaSet and its Service.
func ShardName(memcached string, ordinal int) string {
	return memcached + "-" + strconv.Itoa(ordinal)
}

// Ordinal returns the ordinal in a shard's name; false if it isn't the name of a shard of that
// Memcached.
func Ordinal(memcached, shard string) (int, bool) {
	digits, ok := strings.CutPrefix(shard, memcached+"-")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || strconv.Itoa(n) != digits {
		return 0, false
	}
	return n, true
}

// Host returns the name of a Service, such as a shard's, for clients: the complete name, which needs no search domain. It has no
// final dot, with which few clients accept a certificate.
func (o Options) Host(namespace, service string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service, namespace, cmp.Or(o.ClusterDomain, clusterdns.Default))
}

// Server returns the address of a Service for clients, as host:port.
func (o Options) Server(namespace, service string) string {
	return fmt.Sprintf("%s:%d", o.Host(namespace, service), agentwire.MemcachedPort)
}

// Servers returns the addresses of the shards that clients know, by ordinal.
func (o Options) Servers(m *v1beta1.Memcached) []string { return o.servers(m, SizesOf(m).Listed) }

func (o Options) servers(m *v1beta1.Memcached, size int) []string {
	servers := make([]string, size)
	for ordinal := range servers {
		servers[ordinal] = o.Server(m.Namespace, ShardName(m.Name, ordinal))
	}
	return servers
}

// Labels returns the labels of all objects of a Memcached. They select its pods.
func Labels(memcached string) map[string]string {
	return map[string]string{
		v1beta1.LabelName:      v1beta1.NameValue,
		v1beta1.LabelInstance:  memcached,
		v1beta1.LabelManagedBy: v1beta1.ManagedByValue,
	}
}

// OwnedMeta returns the metadata of an object that is deleted with its Memcached, without a name.
func OwnedMeta(m *v1beta1.Memcached) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Labels: Labels(m.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, v1beta1.GroupVersion.WithKind("Memcached"))}}
}

// PreflightLabels returns the labels of a Memcached's preflight pods. No Service, budget or policy
// of its shards selects them.
func PreflightLabels(memcached string) map[string]string {
	labels := Labels(memcached)
	labels[v1beta1.LabelName] = annotations.PreflightName
	return labels
}

// Resizing is what Kubernetes can resize of running pods.
type Resizing int

// ResizeNothing is Kubernetes before 1.33. Kubernetes 1.33 rejects a lower memory limit
// (https://github.com/kubernetes/kubernetes/pull/130183).
const (
	ResizeNothing Resizing = iota
	ResizeExceptLessMemory
	ResizeAll
)

// Options are the operator's own configuration.
type Options struct {
	// AgentImage contains the agent: the operator's own image.
	AgentImage string
	// DefaultImage of memcached; its tag is the default version.
	DefaultImage string
	// OperatorNamespace is the namespace of the operator's pods, which the network policy admits
	// to the agents; empty when the operator runs outside the cluster.
	OperatorNamespace string
	// ClusterDomain is the domain of all Services' names; empty is cluster.local.
	ClusterDomain string
	// MonitoringNamespaces are those whose pods can read the metrics of the shards by default.
	MonitoringNamespaces []string
	// Restrictions of what a spec may contain.
	Restrictions Restrictions
	// SomeNamespaces is whether the operator watches some namespaces only, and reads no nodes.
	SomeNamespaces bool
	// OmitRunAsUser leaves the user of a pod to the platform, which OpenShift's security context
	// constraints require.
	OmitRunAsUser bool
	// Resizing is what Kubernetes can resize of pods in place.
	Resizing Resizing
	// LogFormat of the agents: json, or text, which is the default.
	LogFormat string
}

// Shard is the desired state of one shard.
type Shard struct {
	// Revision of its template.
	Revision PodRevision
	// Surge creates a second pod.
	Surge bool
	// AvoidNode is a node on which its next pod isn't placed; empty for none.
	AvoidNode string
	// Discovery is the list of the shards that its next pod serves; empty for none.
	Discovery string
	// Scaling is which items its next pod gets of other shards before clients use it; empty for none.
	Scaling string
	// Annotations of its ReplicaSet.
	Annotations map[string]string
}

// Desired is an object that a Memcached should have.
type Desired struct {
	Key Key
	// Shard that a ReplicaSet runs; nil for the other kinds.
	Shard *Shard
	// MaxUnavailable is how many pods a PodDisruptionBudget lets be unavailable, of those that the ReplicaSets should have.
	MaxUnavailable int32
	// Filling are the sizes while new shards get items, which a PodDisruptionBudget doesn't count; otherwise zero.
	Filling Sizes
	// Listed is the label of the pods that stay while other shards leave: of those that a ReplicaSet creates, and that the headless
	// Service selects; empty for none.
	Listed  string
	ordinal int
}

// Object is a desired object as the operator writes it.
type Object struct {
	Key   Key
	Apply runtime.ApplyConfiguration
	// Fallback is written if the API server rejects Apply; nil for none.
	Fallback runtime.ApplyConfiguration
}

// Builder builds the objects of one Memcached, whose spec must have the API server's defaults.
type Builder struct {
	memcached       *v1beta1.Memcached
	name, namespace string
	options         Options
	// labels of all objects, and those of preflight pods.
	labels, preflightLabels map[string]string
	// owner is how the garbage collector deletes the objects with their Memcached.
	owner *metav1ac.OwnerReferenceApplyConfiguration
	// owned is OwnedMeta.
	owned metav1.ObjectMeta
	// templates by revision: the shards' templates differ only in labels and names.
	templates map[string]*template
}

// NewBuilder returns the builder of a Memcached's objects.
func NewBuilder(m *v1beta1.Memcached, options Options) *Builder {
	return &Builder{
		memcached: m, name: m.Name, namespace: m.Namespace, options: options, labels: Labels(m.Name), preflightLabels: PreflightLabels(m.Name), templates: map[string]*template{}, owned: OwnedMeta(m),
		owner: metav1ac.OwnerReference().WithAPIVersion(v1beta1.GroupVersion.String()).WithKind("Memcached").
			WithName(m.Name).WithUID(m.UID).WithController(true).WithBlockOwnerDeletion(true),
	}
}

// Desired returns what a Memcached with these shards should have, in the order of Keys.
func (b *Builder) Desired(shards []Shard) []Desired {
	keys := Keys(b.memcached)
	all := make([]Desired, 0, len(keys))
	for _, key := range keys {
		d := Desired{Key: key, ordinal: -1}
		if ordinal, isShard := key.Ordinal(b.name); isShard {
			d.ordinal = ordinal
			if key.Kind == KindReplicaSet {
				d.Shard, d.Listed = &shards[ordinal], ListedAs(b.memcached, ordinal)
			}
		} else if s := b.memcached.Status.Scaling; key == HeadlessKey(b.memcached) && s != nil && s.PublishTime != nil {
			d.Listed = ListedAs(b.memcached, 0)
		} else if key.Kind == KindPodDisruptionBudget {
			d.MaxUnavailable = 1
			if sizes := SizesOf(b.memcached); sizes.Known < sizes.Exist {
				d.Filling = sizes
			}
		}
		all = append(all, d)
	}
	return all
}

// Build returns an object of Desired. The spec must have no AccessProblem.
func (b *Builder) Build(d Desired) Object {
	o := Object{Key: d.Key}
	switch d.Key.Kind {
	case KindNetworkPolicy:
		o.Apply = b.networkPolicy()
	case KindPodDisruptionBudget:
		budget := b.podDisruptionBudget(d)
		o.Apply, o.Fallback = budget, &withoutMinAvailable{budget}
	case KindService:
		switch {
		case d.ordinal >= 0 && d.Key.Name == ShardName(b.name, d.ordinal):
			o.Apply = b.shardService(d)
		case d.ordinal >= 0:
			o.Apply = b.externalService(d)
		case d.Key == HeadlessKey(b.memcached):
			o.Apply = b.headlessService(d)
		default:
			o.Apply = b.discoveryService()
		}
	default:
		o.Apply = b.replicaSet(d)
	}
	return o
}

// podDisruptionBudget returns the budget that lets drains evict one shard at a time, or none that is ready: a node's shards move
// first. Shards that no client knows don't count: they aren't ready until they have their items.
func (b *Builder) podDisruptionBudget(d Desired) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	selector := metav1ac.LabelSelector().WithMatchLabels(b.labels)
	if d.Filling != (Sizes{}) {
		unlisted := metav1ac.LabelSelectorRequirement().WithKey(v1beta1.LabelShard).WithOperator(metav1.LabelSelectorOpNotIn)
		for ordinal := d.Filling.Known; ordinal < d.Filling.Exist; ordinal++ {
			unlisted.WithValues(strconv.Itoa(ordinal))
		}
		selector.WithMatchExpressions(unlisted)
	}
	return policyv1ac.PodDisruptionBudget(b.name, b.namespace).
		WithLabels(b.labels).
		WithOwnerReferences(b.owner).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(d.MaxUnavailable)).
			// Without it, a shard that can't become ready keeps all nodes of its Memcached from
			// being drained, its own included.
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(selector))
}

// withoutMinAvailable is a budget, with its preconditions, that takes minAvailable from its owner and removes it. A user may have set it
// instead of maxUnavailable, and the API server rejects both.
type withoutMinAvailable struct {
	*policyv1ac.PodDisruptionBudgetApplyConfiguration
}

// MarshalJSON implements json.Marshaler.
func (b *withoutMinAvailable) MarshalJSON() ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b.PodDisruptionBudgetApplyConfiguration)
	if err != nil {
		return nil, err
	}
	fields["spec"].(map[string]any)["minAvailable"] = nil
	return json.Marshal(fields)
}

// service returns what all Services have in common. The operator's labels come last, so that no
// label of the spec replaces one.
func (b *Builder) service(name string, labels map[string]string) *corev1ac.ServiceApplyConfiguration {
	return corev1ac.Service(name, b.namespace).
		WithLabels(b.memcached.Spec.Access.ServiceMetadata.Labels).
		WithLabels(labels).
		WithOwnerReferences(b.owner)
}

// internalService returns what the Services have in common that lead to no load balancer.
func (b *Builder) internalService(name string, labels map[string]string) *corev1ac.ServiceApplyConfiguration {
	return b.service(name, labels).WithAnnotations(b.memcached.Spec.Access.ServiceMetadata.Annotations)
}

// serviceSpec returns what the specs of all Services have in common.
func (b *Builder) serviceSpec() *corev1ac.ServiceSpecApplyConfiguration {
	access, spec := &b.memcached.Spec.Access, corev1ac.ServiceSpec()
	if access.IPFamilyPolicy != "" {
		spec.WithIPFamilyPolicy(access.IPFamilyPolicy)
	}
	return spec.WithIPFamilies(access.IPFamilies...)
}

// headlessService returns the Service whose DNS name resolves to all shards that clients know, and that gives each
// pod a DNS name.
func (b *Builder) headlessService(d Desired) *corev1ac.ServiceApplyConfiguration {
	return b.internalService(b.name, b.labels).
		WithSpec(b.serviceSpec().
			WithClusterIP(corev1.ClusterIPNone).
			WithSelector(d.listed(b.labels)).
			WithPorts(servicePorts()...))
}

// shardService returns the Service with the address of a shard, which outlives its pods.
func (b *Builder) shardService(d Desired) *corev1ac.ServiceApplyConfiguration {
	labels := b.shardLabels(d)
	return b.internalService(d.Key.Name, labels).
		WithSpec(b.serviceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(labels).
			WithPorts(servicePorts()...))
}

// externalService returns the Service through which clients outside the cluster reach a shard. It never has the agent's
// port. It has no protocol of an application, by which some clouds choose another kind of health check.
func (b *Builder) externalService(d Desired) *corev1ac.ServiceApplyConfiguration {
	external := &b.memcached.Spec.Access.External
	labels, spec := b.shardLabels(d), b.serviceSpec()
	if external.ExternalTrafficPolicy != "" {
		spec.WithExternalTrafficPolicy(external.ExternalTrafficPolicy)
	}
	if external.AllocateNodePorts != nil {
		spec.WithAllocateLoadBalancerNodePorts(*external.AllocateNodePorts)
	}
	placeholders := strings.NewReplacer("{shard}", ShardName(b.name, d.ordinal), "{ordinal}", strconv.Itoa(d.ordinal))
	service := b.service(d.Key.Name, labels)
	for name, value := range external.Annotations {
		service.WithAnnotations(map[string]string{name: placeholders.Replace(value)})
	}
	if class := external.LoadBalancerClass; class != "" {
		service.WithAnnotations(map[string]string{annotations.LoadBalancerClass: class})
		spec.WithLoadBalancerClass(class)
	}
	return service.
		WithSpec(spec.
			WithType(corev1.ServiceTypeLoadBalancer).
			WithLoadBalancerSourceRanges(external.SourceRanges...).
			WithSelector(labels).
			WithPorts(servicePort(portMemcached, agentwire.MemcachedPort, portMemcached)))
}

// discoveryService returns the Service with the endpoint of spec.access.discovery, which the pods of all
// shards serve.
func (b *Builder) discoveryService() *corev1ac.ServiceApplyConfiguration {
	return b.internalService(DiscoveryName(b.name), b.labels).
		WithSpec(b.serviceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(b.labels).
			WithPorts(servicePort(portMemcached, agentwire.MemcachedPort, portDiscovery).WithAppProtocol("memcache")))
}

func servicePort(name string, number int32, target string) *corev1ac.ServicePortApplyConfiguration {
	return corev1ac.ServicePort().WithName(name).WithProtocol(corev1.ProtocolTCP).
		WithPort(number).WithTargetPort(intstr.FromString(target))
}

// servicePorts returns the ports of the Services that lead to memcached. A terminating pod uses the agent's port to find
// out which pod its shard's Service leads to now.
func servicePorts() []*corev1ac.ServicePortApplyConfiguration {
	return []*corev1ac.ServicePortApplyConfiguration{
		servicePort(portMemcached, agentwire.MemcachedPort, portMemcached).WithAppProtocol("memcache"),
		servicePort(portAgent, agentwire.Port, portAgent).WithAppProtocol("http"),
	}
}

// replicaSet returns the ReplicaSet that creates the pod of a shard.
func (b *Builder) replicaSet(d Desired) *appsv1ac.ReplicaSetApplyConfiguration {
	labels, replicas := b.shardLabels(d), int32(1)
	if d.Shard.Surge {
		replicas = 2
	}
	return appsv1ac.ReplicaSet(d.Key.Name, b.namespace).
		WithLabels(labels).
		WithAnnotations(d.Shard.Annotations).
		WithOwnerReferences(b.owner).
		WithSpec(appsv1ac.ReplicaSetSpec().
			WithReplicas(replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(b.podTemplate(d.Key.Name, d.listed(labels), d.Shard)))
}

// shardLabels returns the labels of a shard's objects. They select its pod.
func (b *Builder) shardLabels(d Desired) map[string]string {
	labels := Labels(b.name)
	labels[v1beta1.LabelShard] = strconv.Itoa(d.ordinal)
	return labels
}
