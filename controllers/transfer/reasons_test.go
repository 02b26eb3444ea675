package transfer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reasons returns the values of the Reason constants that a package declares.
func reasons(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if is && strings.HasPrefix(spec.Names[0].Name, "Reason") && len(spec.Values) == 1 {
				if literal, is := spec.Values[0].(*ast.BasicLit); is {
					values = append(values, strings.Trim(literal.Value, `"`))
				}
			}
			return true
		})
	}
	return values
}

// The status shows a Job's reason as it is, and the API documents what to do about it.
func TestEveryReasonOfAJobIsAReasonOfTheAPI(t *testing.T) {
	known := reasons(t, "../../api/v1beta1")
	wire := reasons(t, "../../internal/snapshot/wire")
	if len(wire) < 20 {
		t.Fatalf("the Job has only the reasons %v", wire)
	}
	for _, reason := range wire {
		if !slices.Contains(known, reason) {
			t.Errorf("%s is not a reason of the API", reason)
		}
	}
}
