package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// parseProduct returns the parsed files of a directory, without tests, by name.
func parseProduct(t *testing.T, directory string) map[string]*ast.File {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(token.NewFileSet(), filepath.Join(directory, name), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("no Go files in %s", directory)
	}
	return files
}

// A size that was written through /scale may not be that of the shards.
func TestOnlyTheLimitsOfScaleReadTheSizeOfTheSpec(t *testing.T) {
	found := false
	for _, directory := range []string{"..", "../observation", "../plan", "../resources", "../status", "../../backup", "../../metrics", "../../transfer"} {
		for file, parsed := range parseProduct(t, directory) {
			ast.Inspect(parsed, func(n ast.Node) bool {
				size, ok := n.(*ast.SelectorExpr)
				if !ok || size.Sel.Name != "Size" {
					return true
				}
				spec, ok := size.X.(*ast.SelectorExpr)
				if isScale := file == "scale.go"; ok && spec.Sel.Name == "Spec" && !isScale {
					t.Errorf("%s/%s: use resources.Size", directory, file)
				} else if ok && spec.Sel.Name == "Spec" {
					found = true
				}
				return true
			})
		}
	}
	if !found {
		t.Error("nothing reads spec.size")
	}
}

func TestOnlyTheObserverReadsAndOnlyTheWritersWrite(t *testing.T) {
	readers, writers := []string{"observe.go"}, []string{"apply.go"}
	found := map[string]bool{}
	for file, parsed := range parseProduct(t, "..") {
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && typeName(f.Recv.List[0].Type) == "observer" && !slices.Contains(readers, file) && file != "agents.go" {
				t.Errorf("%s: %s is a method of observer", file, f.Name.Name)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name == "Reconciler" {
				return !ok
			}
			ast.Inspect(spec.Type, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok {
					return true
				}
				name := typeName(field.Type)
				if isReader(name) {
					found[file] = true
					if !slices.Contains(readers, file) {
						t.Errorf("%s: type %s has a %s", file, spec.Name.Name, name)
					}
				}
				if isWriter(name) {
					found[file] = true
					if !slices.Contains(writers, file) {
						t.Errorf("%s: type %s has a %s", file, spec.Name.Name, name)
					}
				}
				return true
			})
			return false
		})
	}
	for _, file := range slices.Concat(readers, writers) {
		if !found[file] {
			t.Errorf("no type of %s has a client", file)
		}
	}
}

func isReader(name string) bool {
	return slices.Contains([]string{"client.Reader", "client.Client", "client.WithWatch"}, name)
}

func isWriter(name string) bool {
	return slices.Contains([]string{"client.Writer", "client.Client", "client.WithWatch", "client.StatusClient", "client.StatusWriter",
		"client.SubResourceClient", "client.SubResourceClientConstructor", "client.SubResourceWriter"}, name)
}

// typeName returns a type such as client.Reader as it is written in the source.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// pure are the packages whose functions decide by their arguments.
var pure = []string{"observation", "plan", "preflight", "resources", "rollout", "shard", "status", "window"}

func TestPurePackagesHaveNoClockAndNoNetwork(t *testing.T) {
	for _, directory := range pure {
		for file, parsed := range parseProduct(t, filepath.Join("..", directory)) {
			for _, i := range parsed.Imports {
				path, err := strconv.Unquote(i.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if path == "context" || strings.HasPrefix(path, "net/") && path != "net/netip" || strings.HasSuffix(path, "/client") {
					t.Errorf("%s/%s imports %s", directory, file, path)
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if name := typeName(s); slices.Contains([]string{"time.Now", "time.Since", "time.Until", "time.After", "time.Sleep", "time.NewTimer"}, name) ||
						strings.HasPrefix(name, "net.Dial") || strings.HasPrefix(name, "net.Lookup") || strings.HasPrefix(name, "net.Listen") {
						t.Errorf("%s/%s uses %s", directory, file, name)
					}
				}
				return true
			})
		}
	}
}

// Neither by themselves, nor by what they import.
func TestPurePackagesLinkNoClient(t *testing.T) {
	// Apply configurations are data. One of their functions, for objects without a type, takes a client.
	const data = "k8s.io/client-go/applyconfigurations/meta/v1"
	arguments := []string{"list", "-f", `{{.ImportPath}} {{join .Deps " "}}`, data}
	for _, directory := range pure {
		arguments = append(arguments, "../"+directory)
	}
	out, err := exec.CommandContext(t.Context(), "go", arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	dependencies := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		dependencies[words[0]] = words[1:]
	}
	if len(dependencies) != len(pure)+1 {
		t.Fatalf("go list has %d packages", len(dependencies))
	}
	for path, imports := range dependencies {
		for _, i := range imports {
			if strings.HasPrefix(i, "sigs.k8s.io/controller-runtime") ||
				strings.HasPrefix(i, "k8s.io/client-go") && !strings.HasPrefix(i, "k8s.io/client-go/applyconfigurations") && !slices.Contains(dependencies[data], i) {
				t.Errorf("%s links %s", path, i)
			}
		}
	}
}

// gates returns the values of a package's string constants that begin with Gate, in order.
func gates(t *testing.T, directory string) []string {
	t.Helper()
	var values []string
	for _, file := range parseProduct(t, directory) { // one file has them all
		ast.Inspect(file, func(n ast.Node) bool {
			constant, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(constant.Names[0].Name, "Gate") {
				return true
			}
			for _, value := range constant.Values {
				literal, ok := value.(*ast.BasicLit)
				if !ok { // the list of them
					continue
				}
				text, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
			return true
		})
	}
	return values
}

// Package rollout doesn't import the API, so both have the gates.
func TestGatesOfTheRolloutAreThoseOfTheAPI(t *testing.T) {
	inRollout, inAPI := gates(t, filepath.Join("..", "rollout")), gates(t, filepath.Join("..", "..", "..", "api", "v1beta1"))
	if len(inAPI) == 0 || !slices.Equal(inRollout, inAPI) {
		t.Errorf("rollout has %v, the API has %v", inRollout, inAPI)
	}
}
