package shard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// Field is how a change of one field of the spec rolls out. The table in docs/changes.md
// has the same rows.
type Field struct {
	Name   string
	Method rollout.Method
	// Fallback is the method that a change of the field can require instead; None when there
	// is none.
	Fallback rollout.Method
	// Description for users.
	Description string
}

// Fields are the fields of a Memcached's spec.
var Fields = []Field{
	{"size", rollout.None, rollout.None, "shards are added or removed at the end"},
	{"version", rollout.Recreate, rollout.Replace, "checked on the nodes, then memcached restarts in its pod; replaced when the release series changes, such as 1.6 to 1.7, if crossSeriesUpgrade allows it"},
	{"image", rollout.Recreate, rollout.Replace, "as version"},
	{"imagePullPolicy", rollout.Live, rollout.None, "applies to pods that are created later; running pods keep theirs"},
	{"imagePullSecrets", rollout.Live, rollout.None, "applies to pods that are created later; to change a password, change the Secret"},
	{"memory", rollout.Replace, rollout.None, "memcached can't reload its items, and receives them from the other pod"},
	{"maxConnections", rollout.Restart, rollout.Replace, "memcached restarts; replaced where Kubernetes can't resize the pod for it"},
	{"threads", rollout.Restart, rollout.None, "memcached restarts"},
	{"maxItemSize", rollout.Replace, rollout.None, "as memory"},
	{"extraArgs", rollout.Restart, rollout.Replace, "memcached restarts; replaced for -f, -n, -C and the -o options that set slab sizes, with which it can't reload its items"},
	{"tls", rollout.Restart, rollout.Replace, "memcached restarts; replaced for another secretName, in pods of operator 1.0, and where Kubernetes can't resize the pod for it"},
	{"auth", rollout.Restart, rollout.Replace, "memcached restarts; replaced for another secretName, and in pods of operator 1.0"},
	{"resources", rollout.Live, rollout.Replace, "the pod is resized; replaced where Kubernetes can't"},
	{"scheduling", rollout.Replace, rollout.None, "a pod stays on its node"},
	{"podMetadata", rollout.Live, rollout.None, "the pod's labels and annotations change"},
	{"podSecurity", rollout.Replace, rollout.None, "a pod keeps its security context and service account"},
	{"networkPolicy", rollout.None, rollout.None, "applies to new connections"},
	{"discovery", rollout.None, rollout.None, "the endpoint is created or deleted"},
	{"binding", rollout.None, rollout.None, "the Secret is created"},
	{"service", rollout.None, rollout.None, "the Services' labels and annotations change, and Services for clients outside the cluster are created or deleted"},
	{"monitoring", rollout.None, rollout.None, "applies to the next scrape"},
	{"handover", rollout.None, rollout.None, "applies to pods that are created later"},
	{"updateStrategy", rollout.None, rollout.None, "applies from the next step"},
	{"hashing", rollout.None, rollout.None, "applies from the next restore"},
	{"bootstrap", rollout.None, rollout.None, "applies before the first shard exists"},
	{"finalBackup", rollout.None, rollout.None, "applies from the next final backup"},
	{"deletionPolicy", rollout.None, rollout.None, "applies immediately, also while the Memcached is being deleted"},
	{"refill", rollout.None, rollout.None, "applies to the next shard that is lost"},
	{"paused", rollout.None, rollout.None, "applies from the next step"},
}

// argumentFields determine memcached's arguments, which are compared themselves: a memory
// of 1Gi and one of 1024Mi are the same.
var argumentFields = []string{"memory", "maxConnections", "threads", "maxItemSize", "extraArgs", "tls", "auth"}

// changeBetween returns what it takes to change a pod from one revision to another: its
// method and a description. version is what memcached in the pod reports, empty while it
// is unknown; can is what Kubernetes resizes of running pods, mountsSecrets whether the pod has the Secrets
// that the other revision requires, and handsOver whether the pod and its replacement have what a
// handover requires.
func changeBetween(from, to resources.PodRevision, version string, crossSeries bool, can resources.Resizing, mountsSecrets, handsOver bool) rollout.Change {
	c := rollout.Change{}
	if from.String() == to.String() {
		return c
	}
	var what []string
	need := func(method rollout.Method) { c.Method = max(c.Method, method) }

	fromVersion, toVersion := cmp.Or(version, from.Image.Version), to.Image.Version
	if from.Image.Reference != to.Image.Reference {
		need(rollout.Recreate)
		if from.Image.Version != "" && toVersion != "" && from.Image.Version != toVersion {
			what = append(what, from.Image.Version+" → "+toVersion)
		} else {
			what = append(what, "image "+from.Image.Reference+" → "+to.Image.Reference)
		}
		if a, b := releaseSeries(fromVersion), releaseSeries(toVersion); a != "" && b != "" && a != b {
			need(rollout.Replace)
			if !crossSeries {
				c.Forbidden = fmt.Sprintf("%s may not be able to read items saved by %s, so no shard was changed; "+
					"to upgrade anyway and lose the items, set spec.updateStrategy.crossSeriesUpgrade to Allow",
					toVersion, fromVersion)
			}
		}
	}

	a, b := fieldsOf(&from.Spec), fieldsOf(&to.Spec)
	for _, f := range changedFields(a, b) {
		what = append(what, describe(f.Name, a[f.Name], b[f.Name]))
		if !slices.Contains(argumentFields, f.Name) && f.Name != "resources" {
			need(f.Method)
		}
	}
	if !equality.Semantic.DeepEqual(from.Resources, to.Resources) {
		need(rollout.Live)
		c.Resize = rollout.Needed
		if !resizable(can, from.Resources, to.Resources) {
			need(rollout.Replace)
		}
	}
	if !slices.Equal(from.Arguments, to.Arguments) {
		need(rollout.Restart)
	}
	if !mountsSecrets {
		need(rollout.Replace)
	}
	was, is := slab.Of(from.Arguments, fromVersion), slab.Of(to.Arguments, cmp.Or(toVersion, fromVersion))
	if was.Difference(is) != "" {
		need(rollout.Replace)
	}

	c.Description = strings.Join(what, ", ")
	c.HandsOver = handsOver && was.CAS && is.CAS
	if c.Method == rollout.Replace {
		c.Resize = rollout.NotNeeded
		c.Description += ", " + replacementOf(c)
	}
	return c
}

// replacementOf describes what a replacement of the pod does to the items.
func replacementOf(c rollout.Change) string {
	if c.HandsOver {
		return rollout.MovesWithItems
	}
	return "which starts it empty"
}

// releaseSeries returns the first two parts of a version. Within a release series, memcached reads
// the items that another version saved.
func releaseSeries(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// changedFields returns the fields that differ, except for the image, in the order of Fields.
func changedFields(from, to map[string]any) []Field {
	var found []Field
	for _, f := range Fields {
		if f.Name != "image" && !reflect.DeepEqual(from[f.Name], to[f.Name]) {
			found = append(found, f)
		}
	}
	return found
}

// fieldsOf returns a spec's fields by their JSON names.
func fieldsOf(spec *v1alpha1.MemcachedSpec) map[string]any {
	raw, err := json.Marshal(spec)
	if err != nil { // a spec was decoded from JSON
		panic(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(raw, &all); err != nil {
		panic(err)
	}
	return all
}

// describe describes a field's change, with its values if they are short.
func describe(name string, from, to any) string {
	const short = 40
	a, b := formatValue(from), formatValue(to)
	if a == "" || b == "" || len(a)+len(b) > short {
		return name
	}
	return name + " " + a + " → " + b
}

// formatValue returns a field's value for users, or nothing for an object.
func formatValue(value any) string {
	switch value := value.(type) {
	case nil:
		return "none"
	case []any:
		all := make([]string, len(value))
		for i, v := range value {
			all[i] = formatValue(v)
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
