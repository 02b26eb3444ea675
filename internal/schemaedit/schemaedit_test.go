package schemaedit

import (
	"cmp"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

var bases = filepath.Join("..", "..", "config", "crd", "bases")

// load returns the schema of one of the operator's resources, such as memcacheds.
func load(t testing.TB, plural string) *Schema {
	t.Helper()
	s, err := Load(filepath.Join(bases, "cache.memcached-operator.io_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// parse returns the content of a YAML text, with integers as int64.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := json.Unmarshal(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// named returns an object with the content of a YAML text, and with a name if that has none.
func named(t testing.TB, s *Schema, name, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: parse(t, text)}
	u.SetGroupVersionKind(s.kind)
	u.SetName(cmp.Or(u.GetName(), name))
	u.SetNamespace("default")
	return u
}

func seeded(s *Schema, seed uint64) *Edits {
	return s.NewEdits(rand.New(rand.NewPCG(seed, 0)))
}

// wander edits an object n times, starting with an empty spec, and calls show with the description of each edit, its result, the
// previous object, which is nil at first, and what the API server answers. Edits that it accepts accumulate.
func wander(t testing.TB, s *Schema, edits *Edits, n int, show func(story string, edited, old, admitted *unstructured.Unstructured, err error)) {
	t.Helper()
	var old *unstructured.Unstructured
	spec := map[string]any{}
	for range n {
		next, story := edits.Next(spec)
		edited := object(s, next)
		admitted, err := s.Admit(t.Context(), edited, old)
		show(story, edited, old, admitted, err)
		if err == nil {
			old, spec = admitted, admitted.Object["spec"].(map[string]any)
		}
	}
}
