package memcached

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// constants returns the string constants of a file by their order, those that stand
// for another one with its value.
func constants(t *testing.T, file string) (names []string, values map[string]string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	values = map[string]string{}
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constant := spec.(*ast.ValueSpec)
			for i, name := range constant.Names {
				switch value := constant.Values[i].(type) {
				case *ast.BasicLit:
					if text, err := strconv.Unquote(value.Value); err == nil {
						names = append(names, name.Name)
						values[name.Name] = text
					}
				case *ast.Ident:
					names = append(names, name.Name)
					values[name.Name] = values[value.Name]
				}
			}
		}
	}
	return names, values
}

// rollout imports nothing of the API, so each has the names of its own.
func TestTheGatesOfTheAPIAreThoseOfARolloutInItsOrder(t *testing.T) {
	var asked, told []string
	names, values := constants(t, filepath.Join("rollout", "next.go"))
	for _, name := range names {
		asked = append(asked, values[name])
	}
	names, values = constants(t, filepath.Join("..", "..", "api", "v1alpha1", "names.go"))
	for _, name := range names {
		if strings.HasPrefix(name, "Gate") {
			told = append(told, values[name])
		}
	}
	if len(asked) == 0 || !slices.Equal(asked, told) {
		t.Errorf("a rollout asks %v, and the API has %v", asked, told)
	}
}
