package schemaedit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/cache_*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("samples: %v, %v", files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sample := &unstructured.Unstructured{Object: parse(t, string(raw))}
		sample.SetNamespace("default")
		s := load(t, strings.ToLower(sample.GetKind())+"s")
		admitted, err := s.Admit(t.Context(), sample, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if diff := cmp.Diff(sample.Object["spec"], withoutDefaults(sample.Object["spec"], admitted.Object["spec"])); diff != "" {
			t.Errorf("%s has unknown fields (-sample +admitted):\n%s", file, diff)
		}
	}
}

// withoutDefaults returns what is left of a sample after unknown fields were dropped: the admitted
// object without the defaults that were added to it.
func withoutDefaults(sample, admitted any) any {
	if list, ok := admitted.([]any); ok {
		items, _ := sample.([]any)
		var left []any
		for i := range min(len(list), len(items)) {
			left = append(left, withoutDefaults(items[i], list[i]))
		}
		return left
	}
	fields, ok := admitted.(map[string]any)
	if !ok {
		return admitted
	}
	have, _ := sample.(map[string]any)
	left := map[string]any{}
	for name, value := range fields {
		if _, ok := have[name]; ok {
			left[name] = withoutDefaults(have[name], value)
		}
	}
	return left
}
