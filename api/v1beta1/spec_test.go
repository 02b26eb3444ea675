package v1beta1_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/testcrd"
)

// maxDescription is the limit of the generator (make manifests), in characters: it cuts a longer description.
const maxDescription = 400

func TestSpecsAreSmall(t *testing.T) {
	for plural, most := range map[string]struct{ top, twoLevels int }{
		"memcacheds": {15, 62}, "memcachedbackups": {6, 20}, "memcachedrestores": {10, 25}, "memcachedscheduledbackups": {7, 20},
	} {
		spec := testcrd.Schema(t, "../..", plural).Properties["spec"]
		two := len(spec.Properties)
		for _, group := range spec.Properties {
			two += len(group.Properties)
		}
		t.Logf("%s: %d fields at the top, %d in two levels", plural, len(spec.Properties), two)
		if len(spec.Properties) > most.top || two > most.twoLevels {
			t.Errorf("%s has %d fields at the top and %d in two levels, more than %d and %d", plural, len(spec.Properties), two, most.top, most.twoLevels)
		}
	}
	// kubectl apply stores an object in an annotation, of at most 256 KiB.
	info, err := os.Stat("../../config/crd/bases/" + v1beta1.GroupVersion.Group + "_memcacheds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 224_000 {
		t.Errorf("the CRD has %d bytes", info.Size())
	}
}

// kubectl expands a category before it looks for a resource of that name: "kubectl get memcached cache" would name four.
func TestCategoryIsNoNameOfAResource(t *testing.T) {
	var names, categories []string
	for _, plural := range []string{"memcacheds", "memcachedbackups", "memcachedrestores", "memcachedscheduledbackups"} {
		raw, err := os.ReadFile("../../config/crd/bases/" + v1beta1.GroupVersion.Group + "_" + plural + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			t.Fatal(err)
		}
		if len(crd.Spec.Names.Categories) != 1 || crd.Spec.Names.Categories[0] == "all" { // kubectl delete all --all would delete backups
			t.Errorf("%s is in %q", plural, crd.Spec.Names.Categories)
		}
		names = append(append(names, crd.Spec.Names.Plural, crd.Spec.Names.Singular), crd.Spec.Names.ShortNames...)
		categories = append(categories, crd.Spec.Names.Categories...)
	}
	for _, category := range categories {
		if slices.Contains(names, category) {
			t.Errorf("the category %s is the name of a resource", category)
		}
	}
}

func TestNoDescriptionIsCut(t *testing.T) {
	files, err := filepath.Glob("*_types.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "memcached_spec.go")
	fields := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			field, ok := n.(*ast.Field)
			if !ok || field.Doc == nil || len(field.Names) == 0 {
				return true
			}
			fields++
			var words []string
			for _, line := range strings.Split(field.Doc.Text(), "\n") {
				if !strings.HasPrefix(strings.TrimSpace(line), "+") {
					words = append(words, strings.Fields(line)...)
				}
			}
			if text := strings.Join(words, " "); len(text) > maxDescription {
				t.Errorf("%s: the description of %s has %d characters, more than %d", file, field.Names[0], len(text), maxDescription)
			}
			return true
		})
	}
	if fields < 150 {
		t.Errorf("only %d fields have a description", fields)
	}
}

// groups calls visit for each object of a schema of our own that has a mode.
func groups(path []string, schema apiextensionsv1.JSONSchemaProps, visit func(path []string, group apiextensionsv1.JSONSchemaProps)) {
	if _, ok := schema.Properties["mode"]; ok {
		visit(path, schema)
	}
	for name, below := range schema.Properties {
		groups(append(slices.Clone(path), name), below, visit)
	}
}

// A password that isn't required, or a gate that doesn't wait, would go unnoticed.
func TestGroupIsRejectedWithoutTheModeThatItNeeds(t *testing.T) {
	raw, err := os.ReadFile("../../controllers/memcached/testdata/every_field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	every := map[string]any{}
	if err := yaml.Unmarshal(raw, &every); err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, "memcacheds")
	seen := map[string]int{}
	groups(nil, testcrd.Schema(t, "../..", "memcacheds").Properties["spec"], func(path []string, group apiextensionsv1.JSONSchemaProps) {
		name := strings.Join(path, ".")
		nested := func(fields map[string]any) string {
			var value any = fields
			for _, key := range slices.Backward(path) {
				value = map[string]any{key: value}
			}
			text, err := yaml.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		var values any = every
		for _, key := range path {
			values = values.(map[string]any)[key]
		}
		hasDefault := group.Properties["mode"].Default != nil
		for _, field := range slices.Sorted(maps.Keys(group.Properties)) {
			if field == "mode" {
				continue
			}
			seen[name]++
			_, err := admit(t, schema, "Memcached", "cache", nested(map[string]any{field: values.(map[string]any)[field]}))
			if want := "no effect without a mode: set "; (err != nil) == hasDefault || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s only: error %v, want %q: %t", name, field, err, want, !hasDefault)
			}
		}
		if _, err := admit(t, schema, "Memcached", "cache", nested(map[string]any{})); err != nil {
			t.Errorf("an empty %s is rejected: %v", name, err)
		}
	})
	want := []string{"access.external", "access.networkPolicy", "auth", "backup.refill", "monitoring", "scaling", "tls", "updateStrategy.handover", "updateStrategy.handover.nodeDrain", "updateStrategy.hitRatioGate"}
	if got := slices.Sorted(maps.Keys(seen)); !reflect.DeepEqual(got, want) {
		t.Errorf("groups with a mode and other fields: %v, want %v", got, want)
	}
}

func TestBootstrapIsOfANewMemcached(t *testing.T) {
	schema := schemaOf(t, "memcacheds")
	const none, one, other = "size: 3", "backup: {bootstrap: {backupRef: {name: a}}}", "backup: {bootstrap: {backupRef: {name: b}}}"
	for _, c := range []struct {
		from, to string
		rejected bool
	}{
		{none, none, false}, {one, one, false}, {one, none, false}, {none, one, true}, {one, other, true}, {"backup: {refill: {mode: NewestBackup}}", one, true},
	} {
		from, err := admit(t, schema, "Memcached", "cache", c.from)
		if err != nil {
			t.Fatal(err)
		}
		to := from.DeepCopy()
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(c.to), &fields); err != nil {
			t.Fatal(err)
		}
		to.Object["spec"] = fields
		_, err = schema.Admit(t.Context(), to, from)
		if says := "create a MemcachedRestore"; (err != nil) != c.rejected || err != nil && !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s after %s: %v, want an error with %q: %t", c.to, c.from, err, says, c.rejected)
		}
	}
}
