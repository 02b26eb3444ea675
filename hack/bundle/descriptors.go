package main

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Descriptors of the OpenShift console, see its file descriptors/reference/reference.md. It shows leaves, and groups them
// by the structure that they are in; a structure or a list has no value that it can show. Descriptions are in the CRDs,
// where consoles find them.
const (
	widget     = "urn:alm:descriptor:com.tectonic.ui:"
	advanced   = widget + "advanced"
	inputText  = widget + "text"
	statusText = "urn:alm:descriptor:text"
	phase      = "urn:alm:descriptor:io.kubernetes.phase"
	anyOf      = "urn:alm:descriptor:io.kubernetes:"
	ours       = "cache.memcached-operator.io:v1beta1:"
)

// A console shows the fields in the order of their descriptors: these first, then required fields, the others, and
// structures, each by name.
var first = []string{"size", "memory", "version", "memcachedRef", "schedule"}

// inputs are those of fields whose type doesn't say it, by name.
var inputs = map[string][]string{
	"size":            {widget + "podCount"},
	"resources":       {widget + "resourceRequirements"},
	"imagePullPolicy": {widget + "imagePullPolicy", advanced},
	"nodeAffinity":    {widget + "nodeAffinity", advanced},
	"podAffinity":     {widget + "podAffinity", advanced},
	"podAntiAffinity": {widget + "podAntiAffinity", advanced},
}

// kinds are those of objects in the same namespace, by the last word of a field that contains the name of one:
// caSecretName, memcachedRef.name.
var kinds = map[string]string{
	"secret": "Secret", "binding": "Secret", "account": "ServiceAccount", "claim": "PersistentVolumeClaim", "job": "Job",
	"backup": ours + "MemcachedBackup", "restore": ours + "MemcachedRestore", "memcached": ours + "Memcached",
}

// internal are the fields of a status that serve programs only. A console shows no field without a descriptor.
var internal = []string{"jobUID", "observedGeneration", "selector"}

// field is a property of a schema.
type field struct {
	path string
	apiextensionsv1.JSONSchemaProps
}

func (f field) key() string {
	return f.path[strings.LastIndex(f.path, ".")+1:]
}

func (f field) leaf() bool {
	return f.Type != "object" && f.Type != "array"
}

// fields returns the properties of a structure in the order in which a console shows them, each before those in it.
func (f field) fields() []field {
	var out []field
	order := func(a, b string) int { return cmp.Or(f.rank(a)-f.rank(b), strings.Compare(a, b)) }
	for _, key := range slices.SortedFunc(maps.Keys(f.Properties), order) {
		property := field{strings.TrimPrefix(f.path+"."+key, "."), f.Properties[key]}
		out = append(append(out, property), property.fields()...)
	}
	return out
}

// specDescriptors describes every key of a spec, which the scorecard requires, and those below it that have an input.
func specDescriptors(spec field) []v1alpha1.SpecDescriptor {
	var out []v1alpha1.SpecDescriptor
	for _, f := range spec.fields() {
		top := !strings.Contains(f.path, ".")
		if f.leaf() || top || inputs[f.key()] != nil {
			descriptor := v1alpha1.SpecDescriptor{Path: f.path, DisplayName: words(f.key())}
			if !top || !slices.Contains(spec.Required, f.path) || f.leaf() {
				descriptor.XDescriptors = f.input()
			}
			out = append(out, descriptor)
		}
	}
	return out
}

// statusDescriptors describes the leaves of a status. A console shows the conditions by itself.
func statusDescriptors(status field) []v1alpha1.StatusDescriptor {
	var out []v1alpha1.StatusDescriptor
	for _, f := range status.fields() {
		if !f.leaf() || slices.Contains(internal, f.path) {
			continue
		}
		widgets := []string{statusText}
		switch kind := f.kind(); {
		case f.path == "phase":
			widgets = []string{phase}
		case kind != "":
			widgets = []string{anyOf + kind}
		}
		out = append(out, v1alpha1.StatusDescriptor{Path: f.path, DisplayName: words(f.key()), XDescriptors: widgets})
	}
	return out
}

// input returns the widgets for a field of a spec. Structures and lists are advanced.
func (f field) input() []string {
	kind := f.kind()
	switch {
	case inputs[f.key()] != nil:
		return inputs[f.key()]
	case kind != "":
		return []string{anyOf + kind}
	case f.Type == "boolean":
		return []string{widget + "booleanSwitch"}
	case f.Type == "integer":
		return []string{widget + "number"}
	case len(f.Enum) > 0:
		var options []string
		for _, value := range f.Enum {
			// An empty string is as no value.
			if option := strings.Trim(string(value.Raw), `"`); option != "" {
				options = append(options, widget+"select:"+option)
			}
		}
		return options
	case f.leaf():
		return []string{inputText}
	}
	return []string{advanced}
}

// objectName matches the path of a field that names an object, such as caSecretName and memcachedRef.name.
var objectName = regexp.MustCompile(`([A-Za-z][a-z]*)(?:Ref)?(?:\.n|N)ame$`)

// kind returns the kind of the object that a field names, if it does, as a descriptor names it.
func (f field) kind() string {
	match := objectName.FindStringSubmatch(f.path)
	if f.Type != "string" || match == nil {
		return ""
	}
	return kinds[strings.ToLower(match[1])]
}

// rank returns the place of a key among those that come first, or that of its group after them.
func (f field) rank(key string) int {
	switch i := slices.Index(first, key); {
	case i >= 0:
		return i
	case slices.Contains(f.Required, key):
		return len(first)
	case !(field{JSONSchemaProps: f.Properties[key]}).leaf():
		return len(first) + 2
	}
	return len(first) + 1
}

// initialisms are words of keys that a title writes in capitals.
var initialisms = []string{"CA", "FS", "S3", "TLS", "TTL", "UID"}

// boundary is where a word ends and the next one begins, as in maxTTL and in TTLSeconds.
var boundary = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// words turns a key into a title: maxItemSize into "Max Item Size", caSecretName into
// "CA Secret Name".
func words(key string) string {
	all := strings.Fields(boundary.ReplaceAllString(key, "$1$3 $2$4"))
	for i, word := range all {
		if all[i] = strings.ToUpper(word); !slices.Contains(initialisms, all[i]) {
			all[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(all, " ")
}
