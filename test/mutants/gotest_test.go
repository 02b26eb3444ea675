package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// code is a module with one function, one test of it, and two helpers for what else
// may become of a test.
var code = map[string]string{
	"go.mod": "module example.com/double\n\ngo 1.26\n",
	"double.go": `package double

func Double(n int) int { return 2 * n }

func Wait() {}
`,
	"double_test.go": `package double

import (
	"os"
	"os/exec"
	"testing"
)

func TestDouble(t *testing.T) {
	for n, want := range map[int]int{0: 0, 2: 4} {
		if got := Double(n); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}

func TestWait(t *testing.T) { Wait() }

func TestLeaves(t *testing.T) {
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("left", []byte{}, 0o600); err != nil {
		t.Fatal(err)
	}
	Double(1)
}
`,
	"inner/go.mod": "module example.com/inner\n\ngo 1.26\n",
	"inner/inner_test.go": `package inner

import (
	"os/exec"
	"testing"
)

func TestTheProgramOfTheOtherModuleBuildsToDouble(t *testing.T) {
	c := exec.Command("go", "test", "-count=1", "-run=TestDouble", ".")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
`,
}

// repositoryOf writes the module.
func repositoryOf(t *testing.T) gotest {
	t.Helper()
	root := t.TempDir()
	for name, text := range code {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return gotest{root}
}

func change(from, to string) *overlay {
	return &overlay{"double.go", strings.Replace(code["double.go"], from, to, 1)}
}

func TestWhatARunOfTestsTells(t *testing.T) {
	g := repositoryOf(t)
	for name, c := range map[string]struct {
		tests   tests
		overlay *overlay
		timeout time.Duration
		failed  string
		hung    bool
		err     string
	}{
		"without a mutant":               {tests: tests{".", []string{"TestDouble"}}},
		"a mutant that is noticed":       {tests: tests{".", nil}, overlay: change("2 * n", "3 * n"), failed: "TestDouble"},
		"one that is not":                {tests: tests{".", []string{"TestDouble"}}, overlay: change("2 * n", "n + n")},
		"one that only a panic tells of": {tests: tests{".", nil}, overlay: change("Wait() {}", `Wait() { panic("no") }`), failed: "TestWait"},
		"one that hangs": {tests: tests{".", []string{"TestDouble", "TestWait"}}, overlay: change("Wait() {}", "Wait() { for {} }"),
			timeout: 5 * time.Second, failed: "TestWait", hung: true},
		"one that ends the program":     {tests: tests{".", []string{"TestDouble"}}, overlay: change("package double\n", "package double\nfunc init() { panic(1) }\n"), failed: "example.com/double"},
		"one that is no Go":             {tests: tests{".", nil}, overlay: change("2 * n", `"2"`), err: "it does not compile"},
		"a test that there is not":      {tests: tests{".", []string{"TestHalf"}}, err: "no test ran"},
		"a package that there is not":   {tests: tests{"./half", nil}, err: "half: directory not found"},
		"the test of another module":    {tests: tests{"./inner", nil}},
		"a program that a test builds":  {tests: tests{"./inner", nil}, overlay: change("2 * n", "3 * n"), failed: "TestTheProgramOfTheOtherModuleBuildsToDouble"},
		"one that a test of none names": {tests: tests{".", []string{"TestWait"}}, overlay: change("2 * n", "3 * n")},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := c.timeout
			if timeout == 0 {
				timeout = 5 * time.Minute
			}
			v, err := g.test(t.Context(), c.tests, c.overlay, timeout)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%+v, %v; want %s", v, err, c.err)
				}
				return
			}
			if err != nil || v.failed != c.failed || v.hung != c.hung {
				t.Errorf("%+v, %v; want %q, hung %v", v, err, c.failed, c.hung)
			}
		})
	}
	if text, err := os.ReadFile(filepath.Join(g.root, "double.go")); err != nil || string(text) != code["double.go"] {
		t.Errorf("the code was touched: %s, %v", text, err)
	}
}

func TestAMutantHasToBeGo(t *testing.T) {
	g := repositoryOf(t)
	if err := g.compile(t.Context(), *change("2 * n", "3 * n")); err != nil {
		t.Error(err)
	}
	if err := g.compile(t.Context(), *change("2 * n", `"2"`)); !errors.Is(err, errNoGo) {
		t.Error(err)
	}
}

func TestWhatATestLeavesBehindIsEnded(t *testing.T) {
	g := repositoryOf(t)
	before := runs.Load()
	if v, err := g.test(t.Context(), tests{".", []string{"TestLeaves"}}, nil, 5*time.Minute); err != nil || v.failed != "" {
		t.Fatal(v, err)
	}
	if _, err := os.Stat(filepath.Join(g.root, "left")); err != nil {
		t.Fatal("the test did not run: ", err)
	}
	for n := before + 1; n <= runs.Load(); n++ {
		if left := marked(markOf(n)); len(left) > 0 {
			t.Errorf("%v still run", left)
		}
	}
}

func TestEachMutantIsTried(t *testing.T) {
	g := repositoryOf(t)
	r := runner{gotest: g, jobs: 1, out: t.Output()}
	all := []mutant{
		{name: "double is treble", file: "double.go", from: "2 * n", to: "3 * n", tests: []tests{{".", []string{"TestDouble"}}}},
		{name: "double is a sum", file: "double.go", from: "2 * n", to: "n + n", tests: []tests{{".", []string{"TestDouble"}}, {"./inner", nil}}},
	}
	results, err := r.run(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if results[0].killed != "TestDouble" || results[1].killed != "" {
		t.Errorf("%v", results)
	}
	if names := survivors(results); len(names) != 1 || names[0] != "double is a sum" {
		t.Errorf("%q survive", names)
	}

	broken := all[0]
	broken.name, broken.to = "double is a text", `"2"`
	if _, err := r.run(t.Context(), []mutant{broken}); !errors.Is(err, errNoGo) || !strings.Contains(err.Error(), broken.name) {
		t.Errorf("a mutant that is no Go: %v", err)
	}
	gone := all[0]
	gone.from = "4 * n"
	if _, err := r.run(t.Context(), []mutant{all[0], gone}); err == nil || !strings.Contains(err.Error(), "no longer fits the code") {
		t.Errorf("a mutant that does not fit: %v", err)
	}
	if err := os.WriteFile(filepath.Join(g.root, "double.go"), []byte(strings.Replace(code["double.go"], "2 * n", "3 * n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := all[1]
	sum.from = "3 * n"
	if _, err := r.run(t.Context(), []mutant{sum}); err == nil || !strings.Contains(err.Error(), "fails without any mutant") {
		t.Errorf("a test that fails anyway: %v", err)
	}
}
