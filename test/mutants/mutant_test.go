package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const repository = "../.."

func TestEveryMutantFitsTheCode(t *testing.T) {
	all, err := mutants()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Error("the list is empty")
	}
	for _, m := range all {
		text, err := m.mutated(repository)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("mutant %q is no Go: %v", m.name, err)
		}
	}
}

func TestEveryTestThatIsToKillExists(t *testing.T) {
	all, err := mutants()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]map[string]bool{}
	for _, m := range all {
		for _, tests := range m.tests {
			if have[tests.pkg] == nil {
				have[tests.pkg] = testsOf(t, filepath.Join(repository, tests.pkg))
			}
			if len(have[tests.pkg]) == 0 {
				t.Errorf("mutant %q: %s has no tests", m.name, tests.pkg)
			}
			for _, name := range tests.names {
				if !have[tests.pkg][name] {
					t.Errorf("mutant %q: %s has no test %s", m.name, tests.pkg, name)
				}
			}
		}
	}
}

// testsOf returns the names of a folder's tests.
func testsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names[f.Name.Name] = true
			}
		}
	}
	return names
}

func TestAMutantIsReadAsItIsWritten(t *testing.T) {
	got, err := parse("area", `# about the area

one thing is wrong
in a/b.go
tests ./a
tests ./test/sim TestOne TestTwo
-	if a &&
-		b {
+	if a {

# the text is taken away
another is
in a/c.go
tests ./a
-, noneOut
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []mutant{
		{name: "one thing is wrong", area: "area", file: "a/b.go", from: "\tif a &&\n\t\tb {", to: "\tif a {",
			tests: []tests{{pkg: "./a", names: []string{}}, {pkg: "./test/sim", names: []string{"TestOne", "TestTwo"}}}},
		{name: "another is", area: "area", file: "a/c.go", from: ", noneOut", tests: []tests{{pkg: "./a", names: []string{}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
}

func TestAMutantThatIsNotWrittenAsItShouldIsToldOf(t *testing.T) {
	for text, want := range map[string]string{
		"name\ntests ./a\n-x\n+y":                   "it names no file",
		"name\nin a.go\n-x\n+y":                     "it names no tests",
		"name\nin a.go\ntests ./a\n+y":              "it names no text to replace",
		"name\nin a.go\ntests ./a\n-x\n+x":          "it changes nothing",
		"name\nin a.go\nin b.go\ntests ./a\n-x\n+y": `"in b.go" is none of`,
		"name\nin a.go\ntests\n-x\n+y":              `"tests" is none of`,
		"name\nin a.go\ntest ./a\n-x\n+y":           `"test ./a" is none of`,
	} {
		if _, err := parse("area", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestAMutantThatNoLongerFitsIsNamed(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a // twice twice once"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ file, from, want string }{
		"it fits":              {"a.go", "once", ""},
		"the text is gone":     {"a.go", "never", "holds the text that is to be replaced 0 times"},
		"the text came again":  {"a.go", "twice", "holds the text that is to be replaced 2 times"},
		"the file was renamed": {"b.go", "once", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := mutant{name: "something is wrong", file: c.file, from: c.from, to: "x"}.mutated(root)
			switch {
			case c.want == "":
				if err != nil || text != "package a // twice twice x" {
					t.Errorf("%q, %v", text, err)
				}
			case err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `mutant "something is wrong" no longer fits the code`):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestAPackageIsFoundInItsModule(t *testing.T) {
	for folder, want := range map[string][2]string{
		"./agent":                       {"../..", "./agent"},
		"./controllers/memcached":       {"../..", "./controllers/memcached"},
		"./test/process":                {"../../test", "./process"},
		"test/internal/items":           {"../../test", "./internal/items"},
		"controllers/memcached/rollout": {"../..", "./controllers/memcached/rollout"},
	} {
		dir, pkg, err := module(repository, folder)
		if err != nil || dir != want[0] || pkg != want[1] {
			t.Errorf("%s: %s in %s, %v; want %s in %s", folder, pkg, dir, err, want[1], want[0])
		}
	}
}

func TestTheBaselineHasEveryTestThatAMutantNames(t *testing.T) {
	got := union([]mutant{
		{tests: []tests{{"./a", []string{"TestB"}}, {"./c", nil}}},
		{tests: []tests{{"./a", []string{"TestA"}}, {"./b", nil}}},
		{tests: []tests{{"./b", []string{"TestX"}}, {"./c", []string{"TestX"}}, {"./a", []string{"TestB"}}}},
	})
	want := []tests{{"./a", []string{"TestA", "TestB"}}, {"./c", nil}, {"./b", nil}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
