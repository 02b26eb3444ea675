package memcached

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/manifests"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/geometry"
)

// field is how a change of one field of the spec reaches the shards that run. The
// table in docs/user-guide.md is this one.
type field struct {
	name  string
	class rollout.Class
	// may is the class that a change of it can need too; Nothing when there is none.
	may rollout.Class
	// how, for a person.
	how string
}

var fields = []field{
	{"size", rollout.Nothing, rollout.Nothing, "shards are added and removed at the end"},
	{"version", rollout.Recreate, rollout.Replace, "proven on the nodes, then memcached restarts in its pod; replaced from one series, such as 1.6, to another, where that is allowed"},
	{"image", rollout.Recreate, rollout.Replace, "as version"},
	{"imagePullPolicy", rollout.Live, rollout.Nothing, "holds for pods made later; a pod that runs keeps its own"},
	{"imagePullSecrets", rollout.Live, rollout.Nothing, "holds for pods made later; to change a password, change the Secret"},
	{"memory", rollout.Replace, rollout.Nothing, "memcached cannot take its items along"},
	{"connections", rollout.Restart, rollout.Replace, "memcached restarts; replaced where Kubernetes cannot resize the pod for it"},
	{"threads", rollout.Restart, rollout.Nothing, "memcached restarts"},
	{"maxItemSize", rollout.Replace, rollout.Nothing, "memcached cannot take its items along"},
	{"extraArgs", rollout.Restart, rollout.Replace, "memcached restarts; replaced for -f, -n, -C and those of -o that set slab sizes, which it cannot take its items along with"},
	{"resources", rollout.Live, rollout.Replace, "the pod is resized; replaced where Kubernetes cannot"},
	{"nodeSelector", rollout.Replace, rollout.Nothing, "a pod stays on its node"},
	{"tolerations", rollout.Replace, rollout.Nothing, "as nodeSelector"},
	{"affinity", rollout.Replace, rollout.Nothing, "as nodeSelector"},
	{"topologySpreadConstraints", rollout.Replace, rollout.Nothing, "as nodeSelector"},
	{"priorityClassName", rollout.Replace, rollout.Nothing, "as nodeSelector"},
	{"podLabels", rollout.Live, rollout.Nothing, "the pod is relabelled"},
	{"podAnnotations", rollout.Live, rollout.Nothing, "the pod is annotated"},
	{"updateStrategy", rollout.Nothing, rollout.Nothing, "holds from the next step"},
	{"hashing", rollout.Nothing, rollout.Nothing, "holds from the next restore"},
	{"bootstrap", rollout.Nothing, rollout.Nothing, "holds while there is no shard yet, and does nothing later"},
	{"backup", rollout.Nothing, rollout.Nothing, "holds from the next backup of the operator's own"},
	{"deletionPolicy", rollout.Nothing, rollout.Nothing, "holds at once, also while the Memcached is being deleted"},
	{"rewarm", rollout.Nothing, rollout.Nothing, "holds from the next shard that is lost"},
	{"paused", rollout.Nothing, rollout.Nothing, "holds from the next step"},
}

// argumentFields make up memcached's arguments, which tell by themselves what a
// change of them needs: a memory of 1Gi and one of 1024Mi are the same.
var argumentFields = []string{"memory", "connections", "threads", "maxItemSize", "extraArgs"}

// changeOf returns what it takes to bring a pod from what it is to what is asked,
// as far as the two tell: its class and a description. version is memcached's own
// in the pod, empty while it is not known; canResize whether Kubernetes resizes
// pods in place.
func changeOf(from, to manifests.Asked, version string, acceptCold, canResize bool) rollout.Change {
	c := rollout.Change{}
	if from.String() == to.String() {
		return c
	}
	var what []string
	need := func(class rollout.Class) { c.Class = max(c.Class, class) }

	fromVersion, toVersion := cmp.Or(version, from.Image.Version), to.Image.Version
	if from.Image.Reference != to.Image.Reference {
		need(rollout.Recreate)
		if from.Image.Version != "" && toVersion != "" && from.Image.Version != toVersion {
			what = append(what, from.Image.Version+" → "+toVersion)
		} else {
			what = append(what, "image "+from.Image.Reference+" → "+to.Image.Reference)
		}
		if a, b := series(fromVersion), series(toVersion); a != "" && b != "" && a != b {
			need(rollout.Replace)
			if !acceptCold {
				c.Forbidden = fmt.Sprintf("memcached does not tell whether %s can read the items that %s saved, so no shard is changed; to give the items up, set spec.updateStrategy.whenNotWarm to Continue",
					toVersion, fromVersion)
			}
		}
	}

	fromWords, _ := from.Arguments()
	toWords, _ := to.Arguments()
	if !slices.Equal(fromWords, toWords) {
		need(rollout.Restart)
	}
	if geometry.Of(fromWords, fromVersion).Difference(geometry.Of(toWords, cmp.Or(toVersion, fromVersion))) != "" {
		need(rollout.Replace)
	}
	if a, b := manifests.Resources(&from.Spec), manifests.Resources(&to.Spec); !equality.Semantic.DeepEqual(a, b) {
		need(rollout.Live)
		c.Resize = rollout.Needed
		if !canResize || !resizable(a, b) {
			need(rollout.Replace)
		}
	}
	a, b := fieldsOf(&from.Spec), fieldsOf(&to.Spec)
	for _, f := range differing(a, b) {
		what = append(what, describe(f.name, a[f.name], b[f.name]))
		if !slices.Contains(argumentFields, f.name) && f.name != "resources" {
			need(f.class)
		}
	}

	c.What = strings.Join(what, ", ")
	if c.Class == rollout.Replace {
		c.What += ", which starts it empty"
		c.Resize = rollout.NotNeeded
	}
	return c
}

// series returns the first two parts of a version: within a series memcached
// reads what another version saved.
func series(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// differing returns the fields in which what is asked differs, but for the image,
// in the order of the table.
func differing(from, to map[string]any) []field {
	var found []field
	for _, f := range fields {
		if f.name != "image" && !reflect.DeepEqual(from[f.name], to[f.name]) {
			found = append(found, f)
		}
	}
	return found
}

// fieldsOf returns a spec's fields by their names in JSON.
func fieldsOf(spec *v1alpha1.MemcachedSpec) map[string]any {
	raw, err := json.Marshal(spec)
	if err != nil { // a spec came as JSON, so it can be written as JSON
		panic(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(raw, &all); err != nil {
		panic(err)
	}
	return all
}

// describe tells of a field's change: with its values, when they are short.
func describe(name string, from, to any) string {
	const short = 40
	a, b := words(from), words(to)
	if a == "" || b == "" || len(a)+len(b) > short {
		return name
	}
	return name + " " + a + " → " + b
}

// words returns a field's value for a person; nothing when that is not a plain one.
func words(value any) string {
	switch value := value.(type) {
	case nil:
		return "none"
	case []any:
		all := make([]string, len(value))
		for i, v := range value {
			all[i] = words(v)
		}
		if slices.Contains(all, "") {
			return ""
		}
		return strings.Join(all, " ")
	case map[string]any:
		return ""
	default:
		return fmt.Sprint(value)
	}
}

// resizable says whether Kubernetes can take a running container from some
// resources to others: processor and memory only, and none of them taken away. The
// class of service stays what it is: the container that installs the agent has no
// limit of processor, so that every shard's pod is Burstable.
func resizable(from, to corev1.ResourceRequirements) bool {
	for _, lists := range [][2]corev1.ResourceList{{from.Requests, to.Requests}, {from.Limits, to.Limits}} {
		was, is := lists[0], lists[1]
		for name := range was {
			if _, ok := is[name]; !ok {
				return false
			}
		}
		for name, quantity := range is {
			before, ok := was[name]
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && (!ok || before.Cmp(quantity) != 0) {
				return false
			}
		}
	}
	return equality.Semantic.DeepEqual(from.Claims, to.Claims)
}

// hasResources says whether a pod's memcached container has been given resources,
// and whether they are in effect, with the kubelet's reason when they are not.
// refused: the node will never have room for them.
func hasResources(pod *corev1.Pod, want corev1.ResourceRequirements) (progress rollout.Progress, why string) {
	if len(lacking(given(pod), want)) > 0 {
		return rollout.Needed, ""
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodResizePending && c.Reason == corev1.PodReasonInfeasible:
			return rollout.Refused, c.Message
		case c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress:
			return rollout.Underway, cmp.Or(c.Message, string(c.Type))
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == manifests.Container && c.Resources != nil && len(lacking(*c.Resources, want)) > 0 {
			return rollout.Underway, "the kubelet resizes the pod"
		}
	}
	return rollout.Done, ""
}

// given returns the resources that a pod's memcached container is to have.
func given(pod *corev1.Pod) corev1.ResourceRequirements {
	for _, c := range pod.Spec.Containers {
		if c.Name == manifests.Container {
			return c.Resources
		}
	}
	return corev1.ResourceRequirements{}
}

// amount is a request or a limit of a resource.
type amount struct {
	isLimit bool
	name    corev1.ResourceName
}

// lacking returns which of the amounts that are wanted are others, or not there. What
// is there beside them does not count.
func lacking(have, want corev1.ResourceRequirements) []amount {
	var amounts []amount
	for isLimit, lists := range map[bool][2]corev1.ResourceList{false: {have.Requests, want.Requests}, true: {have.Limits, want.Limits}} {
		for name, quantity := range lists[1] {
			if q, ok := lists[0][name]; !ok || q.Cmp(quantity) != 0 {
				amounts = append(amounts, amount{isLimit, name})
			}
		}
	}
	return amounts
}

// isAstray says whether the operator gave a pod other resources than it is to have,
// and can take them back. Those that somebody else gave it since, such as an
// autoscaler, are his.
func isAstray(pod *corev1.Pod, want corev1.ResourceRequirements) bool {
	amounts := lacking(given(pod), want)
	if len(amounts) == 0 || !resizable(given(pod), want) {
		return false
	}
	isOurs := resizedByUs(pod)
	return !slices.ContainsFunc(amounts, func(a amount) bool { return !isOurs[a] })
}

// resizedByUs returns which amounts of a pod's memcached container the operator was the
// last to change, as the API server tells.
func resizedByUs(pod *corev1.Pod) map[amount]bool {
	ours := map[amount]bool{}
	for _, e := range pod.ManagedFields {
		var fields struct {
			Spec struct {
				Containers map[string]struct {
					Resources struct {
						Requests map[string]any `json:"f:requests"`
						Limits   map[string]any `json:"f:limits"`
					} `json:"f:resources"`
				} `json:"f:containers"`
			} `json:"f:spec"`
		}
		if !isOurResize(e) || e.FieldsV1 == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		resources := fields.Spec.Containers[`k:{"name":"`+manifests.Container+`"}`].Resources
		for isLimit, of := range map[bool]map[string]any{false: resources.Requests, true: resources.Limits} {
			for name := range of {
				ours[amount{isLimit, corev1.ResourceName(strings.TrimPrefix(name, "f:"))}] = true
			}
		}
	}
	return ours
}

// isOurResize says whether an entry tells which of a pod's resources the operator
// changed last.
func isOurResize(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == v1alpha1.ManagedByValue && e.Subresource == subresourceResize
}
