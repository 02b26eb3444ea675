package shard

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// field is a field of a revision's spec, and the least disruptive method of its change.
type field struct {
	name   string
	method rollout.Method
}

// fields are the fields of a revision except for its image. Those without a method determine the arguments or the resources, which are
// compared themselves: a memory of 1Gi and one of 1024Mi are the same.
var fields = []field{
	{"memory", rollout.None},
	{"config.maxConnections", rollout.None},
	{"config.threads", rollout.None},
	{"config.maxItemSize", rollout.None},
	{"config.extraArgs", rollout.None},
	{"tls", rollout.None},
	{"auth", rollout.None},
	{"resources", rollout.None},
	{"pod.imagePullPolicy", rollout.Live},
	{"pod.imagePullSecrets", rollout.Live},
	{"pod.metadata", rollout.Live},
	{"pod.nodeSelector", rollout.Replace},
	{"pod.tolerations", rollout.Replace},
	{"pod.affinity", rollout.Replace},
	{"pod.topologySpreadConstraints", rollout.Replace},
	{"pod.priorityClassName", rollout.Replace},
	{"pod.securityContext", rollout.Replace},
	{"pod.serviceAccountName", rollout.Replace},
	{"pod.nodeLossTolerationSeconds", rollout.Live},
}

// difference returns the least disruptive method of a change of the fields that differ between two revisions, and describes what
// differs.
func difference(from, to resources.PodRevision) (least rollout.Method, description string) {
	changed := changedFields(from, to)
	for _, field := range changed {
		least = max(least, field.method)
	}
	return least, describe(from, to, changed)
}

// changedField is a field with its values before and after a change.
type changedField struct {
	field
	from, to any
}

// changedFields returns the fields that differ, in the order of fields.
func changedFields(from, to resources.PodRevision) []changedField {
	a, b := valuesOf(&from.Spec), valuesOf(&to.Spec)
	var changed []changedField
	for _, f := range fields {
		if !reflect.DeepEqual(a[f.name], b[f.name]) {
			changed = append(changed, changedField{f, a[f.name], b[f.name]})
		}
	}
	return changed
}

// valuesOf returns a spec's fields by their JSON names, those of a group with the group's before them.
func valuesOf(spec *v1beta1.MemcachedSpec) map[string]any {
	raw, err := json.Marshal(spec)
	if err != nil { // a spec was decoded from JSON
		panic(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(raw, &all); err != nil {
		panic(err)
	}
	for _, group := range []string{"config", "pod"} {
		below, _ := all[group].(map[string]any)
		for name, value := range below {
			all[group+"."+name] = value
		}
	}
	return all
}

// describe describes what differs: the versions or images, and the fields.
func describe(a, b resources.PodRevision, changed []changedField) string {
	var what []string
	if from, to := a.Image, b.Image; from.Reference != to.Reference {
		if from.Version != "" && to.Version != "" && from.Version != to.Version {
			what = append(what, from.Version+" → "+to.Version)
		} else {
			what = append(what, "image "+from.Reference+" → "+to.Reference)
		}
	}
	for _, c := range changed {
		what = append(what, c.String())
	}
	return strings.Join(what, ", ")
}

// String describes the change of a field, with its values if they are short.
func (c changedField) String() string {
	const short = 40
	a, b := formatValue(c.from), formatValue(c.to)
	if a == "" || b == "" || len(a)+len(b) > short {
		return c.name
	}
	return c.name + " " + a + " → " + b
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
