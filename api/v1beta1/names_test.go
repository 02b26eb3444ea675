package v1beta1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// stringConstants returns the string constants that the files of a package declare, by name.
func stringConstants(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of %s: %v, %v", dir, files, err)
	}
	found := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if found[spec.Names[i].Name], err = strconv.Unquote(literal.Value); err != nil {
						t.Fatal(err)
					}
				}
			}
			return true
		})
	}
	return found
}

func TestConstantsAreNamedAfterTheirValues(t *testing.T) {
	constants := stringConstants(t, ".")
	count := map[string]int{}
	for name, value := range constants {
		for _, prefix := range []string{"Reason", "Gate", "Event", "Condition", "Phase", "Start", "Update", "Transfer"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				count[prefix]++
				if rest != value {
					t.Errorf("%s is %q, want %q", name, value, rest)
				}
			}
		}
	}
	for prefix, atLeast := range map[string]int{"Reason": 60, "Gate": 11, "Event": 20, "Condition": 6, "Phase": 6, "Start": 2, "Update": 4, "Transfer": 4} {
		if count[prefix] < atLeast {
			t.Errorf("found %d constants %s..., want at least %d", count[prefix], prefix, atLeast)
		}
	}
}

func TestLabelsAndAnnotationsBelongToTheGroup(t *testing.T) {
	for name, value := range stringConstants(t, ".") {
		own := strings.HasPrefix(name, "Annotation") || strings.HasPrefix(name, "Finalizer")
		if own && !strings.HasPrefix(value, "cache.memcached-operator.io/") {
			t.Errorf("%s is %q, which isn't a name in the API group", name, value)
		}
	}
}

// The planner of rollouts imports only the standard library, so it declares the gates itself.
func TestGatesAreThoseOfTheRollout(t *testing.T) {
	planner := stringConstants(t, "../../controllers/memcached/rollout")
	for _, c := range []struct{ in, of map[string]string }{{planner, stringConstants(t, ".")}, {stringConstants(t, "."), planner}} {
		for name, value := range c.in {
			if strings.HasPrefix(name, "Gate") && c.of[name] != value {
				t.Errorf("%s is %q in one package and %q in the other", name, value, c.of[name])
			}
		}
	}
}
