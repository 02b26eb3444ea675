package hostile

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// site is where a condition applies.
type site struct {
	namespace, condition string
	// nameserver is the address of the cluster's DNS.
	nameserver string
	// digests are the images of memcached with their digests, by version.
	digests map[string]string
}

// probeLabel of a pod names the only condition that applies to it.
const probeLabel = "hostile-probe"

var (
	pods      = []admissionv1.Rule{{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}
	templates = []admissionv1.Rule{
		{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
		{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"replicasets"}},
	}
)

func (s site) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: s.condition}
}

// policy returns the metadata of a policy or binding.
func (s site) policy(rules []admissionv1.Rule, suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: strings.Join([]string{s.namespace, s.condition, rules[0].Resources[0], suffix}, "-")}
}

func (s site) match(rules []admissionv1.Rule, operations ...admissionv1.OperationType) *admissionv1.MatchResources {
	match := &admissionv1.MatchResources{}
	for _, rule := range rules {
		match.ResourceRules = append(match.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{Rule: rule, Operations: operations},
		})
	}
	return match
}

func (s site) bound() *admissionv1.MatchResources {
	return &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}}}
}

func (s site) except() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "probe", Expression: fmt.Sprintf("object.metadata.?labels[?'%s'].orValue('%s') == '%s'", probeLabel, s.condition, s.condition)}}
}

// denies returns a policy that rejects objects at their creation unless an expression is true.
func (s site) denies(rules []admissionv1.Rule, expression, message string) []client.Object {
	meta := s.policy(rules, "denied")
	return []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: s.match(rules, admissionv1.Create), MatchConditions: s.except(),
			Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, MatchResources: s.bound(), ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	}
}

// mutates returns a policy that changes pods at their creation, and in more operations.
func (s site) mutates(mutation admissionv1.Mutation, suffix string, more ...admissionv1.OperationType) []client.Object {
	meta := s.policy(pods, suffix)
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicySpec{
			MatchConstraints: s.match(pods, append(more, admissionv1.Create)...), MatchConditions: s.except(),
			Mutations: []admissionv1.Mutation{mutation}, ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, MatchResources: s.bound(),
		}},
	}
}

func (s site) applies(configuration string, more ...admissionv1.OperationType) []client.Object {
	return s.mutates(admissionv1.Mutation{
		PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: configuration},
	}, "changed", more...)
}

func (s site) adds(path string, value any) []client.Object {
	return s.patched(patch(path, value), path)
}

func (s site) patched(expression, path string) []client.Object {
	suffix := strings.ToLower(strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"))
	return s.mutates(admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: expression}}, suffix)
}

// initContainer returns a policy that prepends an init container.
func (s site) initContainer(c corev1.Container) []client.Object {
	const path = "/spec/initContainers"
	return s.patched("has(object.spec.initContainers) ? "+patch(path+"/0", c)+" : "+patch(path, []corev1.Container{c}), path)
}

// patch returns the expression of a JSON patch that adds a value.
func patch(path string, value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var plain any
	if err := json.Unmarshal(data, &plain); err != nil {
		panic(err)
	}
	return fmt.Sprintf("[JSONPatch{op: 'add', path: %q, value: %s}]", path, literal(plain))
}

// literal returns a value of JSON as an expression. CEL rejects lists and maps of different types unless they are dynamic.
func literal(value any) string {
	switch value := value.(type) {
	case map[string]any:
		var pairs []string
		for name, v := range value {
			pairs = append(pairs, fmt.Sprintf("%q: dyn(%s)", name, literal(v)))
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	case []any:
		var all []string
		for _, v := range value {
			all = append(all, "dyn("+literal(v)+")")
		}
		return "[" + strings.Join(all, ", ") + "]"
	case string:
		return fmt.Sprintf("%q", value)
	default:
		return fmt.Sprint(value)
	}
}
