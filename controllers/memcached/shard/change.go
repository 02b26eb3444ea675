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
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/slab"
)

// facts are all that a change of a pod follows from.
type facts struct {
	// from is the revision that the pod has, and to the one that it gets.
	from, to resources.PodRevision
	// request is what a pod that has the revision does besides, such as to move; nil is nothing.
	request *request
	// version is what memcached in the pod reports; empty while it is unknown.
	version string
	// crossSeries is whether another release series is allowed, and byHandover whether a change that restarts
	// memcached becomes a replacement that keeps the items.
	crossSeries, byHandover bool
	// resizing is what Kubernetes resizes of running pods, and resize how far it has resized this one, with its message.
	resizing     resources.Resizing
	resize       rollout.Progress
	resizeReason string
	// mountsSecrets is whether the pod mounts the Secrets that the other revision requires, and secrets what its
	// agent reports of them; nil while it is unknown.
	mountsSecrets bool
	secrets       *agentwire.Secrets
	// handsOver is whether the pod and its replacement have what a handover requires.
	handsOver                              bool
	stopAcknowledged, replacementAnnounced bool
}

// request is a change that doesn't follow from two revisions.
type request struct {
	method            rollout.Method
	reason, forbidden string
}

// changeOf returns what it takes to change a pod. Nothing else makes or edits a Change.
func changeOf(f facts) rollout.Change {
	if f.request == nil && f.from.String() == f.to.String() {
		return rollout.Change{ReplacementAnnounced: f.replacementAnnounced}
	}
	was, is := f.slabs()
	handsOver := f.handsOver && was.CAS && is.CAS
	effect := ", which starts it empty"
	if handsOver {
		effect = ", which moves it to a new pod with its items"
	}
	changed := changedFields(f.from, f.to)
	method, description := f.method(changed, was.Difference(is) == ""), f.describe(changed)
	resize, resizeReason := rollout.NotNeeded, ""
	if f.resizes() {
		resize, resizeReason = f.resize, f.resizeReason
	}
	switch {
	case f.request != nil:
		method, description = f.request.method, f.request.reason
	case method == rollout.Replace:
		description += effect
	case resize == rollout.Refused:
		method, description = rollout.Replace, description+effect+", as its node doesn't have the resources: "+resizeReason
	case f.byHandover && handsOver && method > rollout.Live:
		method, description = rollout.Replace, description+effect
	}
	isReplaced := method == rollout.Replace
	if isReplaced {
		resize, resizeReason = rollout.NotNeeded, ""
	}
	return rollout.Change{
		Method: method, Description: description, Forbidden: f.forbidden(), Resize: resize, ResizeReason: resizeReason,
		StopAcknowledged: f.stopAcknowledged, HandsOver: handsOver, KeepsItems: f.byHandover && handsOver && isReplaced,
		SecretError: f.secretError(method), ReplacementAnnounced: f.replacementAnnounced,
	}
}

// method returns the least disruptive method of a change of these fields and the image. memcached can reload its items
// with the same slabs.
func (f facts) method(changed []changedField, sameSlabs bool) rollout.Method {
	least := rollout.None
	for _, field := range changed {
		least = max(least, field.method)
	}
	switch {
	case f.crossesSeries(), !sameSlabs: // memcached can't reload its items
		return rollout.Replace
	case !f.mountsSecrets, f.resizes() && !resizable(f.resizing, f.from.Resources, f.to.Resources): // nor can the pod change
		return rollout.Replace
	case f.from.Image.Reference != f.to.Image.Reference:
		return max(least, rollout.Recreate)
	case !slices.Equal(f.from.Arguments, f.to.Arguments):
		return max(least, rollout.Restart)
	case f.resizes():
		return max(least, rollout.Live)
	}
	return least
}

func (f facts) resizes() bool {
	return !equality.Semantic.DeepEqual(f.from.Resources, f.to.Resources)
}

// slabs returns how memcached divides its memory before the change and after it.
func (f facts) slabs() (was, is slab.Geometry) {
	return slab.Of(f.from.Arguments, f.fromVersion()), slab.Of(f.to.Arguments, cmp.Or(f.to.Image.Version, f.fromVersion()))
}

func (f facts) fromVersion() string { return cmp.Or(f.version, f.from.Image.Version) }

// crossesSeries reports whether another image has a version of another release series. Within one, memcached reads the
// items that another version saved.
func (f facts) crossesSeries() bool {
	a, b := releaseSeries(f.fromVersion()), releaseSeries(f.to.Image.Version)
	return f.from.Image.Reference != f.to.Image.Reference && a != "" && b != "" && a != b
}

// releaseSeries returns the first two parts of a version.
func releaseSeries(version string) string {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// forbidden returns why the change isn't allowed, and what to do; empty if it is.
func (f facts) forbidden() string {
	switch {
	case f.request != nil:
		return f.request.forbidden
	case f.crossesSeries() && !f.crossSeries:
		return fmt.Sprintf("%s may not be able to read items saved by %s, so no shard was changed; "+
			"to upgrade anyway and lose the items, set spec.updateStrategy.crossSeriesUpgrade to Allow", f.to.Image.Version, f.fromVersion())
	}
	return ""
}

// secretError returns why the pod can't change for lack of a Secret that it mounts; empty if it can. A Secret
// that the pod already uses matters only if another pod has to start with it.
func (f facts) secretError(method rollout.Method) string {
	needs := func(uses, requires bool) bool { return requires && (!uses || method == rollout.Replace) }
	needsTLS := needs(f.from.Spec.TLS != nil, f.to.Spec.TLS != nil)
	needsUsers := needs(f.from.Spec.Auth != nil, f.to.Spec.Auth != nil)
	switch {
	case !f.mountsSecrets, !needsTLS && !needsUsers:
		return ""
	case f.secrets == nil:
		return "the agent hasn't reported yet whether it can use its Secrets"
	case needsTLS && f.secrets.Certificate.Error != "":
		return f.secrets.Certificate.Error
	case needsUsers:
		return f.secrets.Users.Error
	}
	return ""
}

// field is a field of a revision's spec, and the least disruptive method of its change.
type field struct {
	name   string
	method rollout.Method
}

// fields are those of a revision but its image. Those without a method determine the arguments or the resources, which are
// compared themselves: a memory of 1Gi and one of 1024Mi are the same.
var fields = []field{
	{"imagePullPolicy", rollout.Live},
	{"imagePullSecrets", rollout.Live},
	{"memory", rollout.None},
	{"maxConnections", rollout.None},
	{"threads", rollout.None},
	{"maxItemSize", rollout.None},
	{"extraArgs", rollout.None},
	{"tls", rollout.None},
	{"auth", rollout.None},
	{"resources", rollout.None},
	{"scheduling", rollout.Replace},
	{"podMetadata", rollout.Live},
	{"podSecurity", rollout.Replace},
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

// valuesOf returns a spec's fields by their JSON names.
func valuesOf(spec *v1alpha1.MemcachedSpec) map[string]any {
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

// describe describes what differs: the versions or images, and the fields.
func (f facts) describe(changed []changedField) string {
	var what []string
	if from, to := f.from.Image, f.to.Image; from.Reference != to.Reference {
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
