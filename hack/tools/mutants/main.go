// Mutants runs gremlins over the packages whose tests take seconds and writes docs/mutants.md: for each package how many
// small changes of its code its own tests notice, and where they notice none.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// root of the repository, from this module's folder.
const root = "../../.."

// packages are those whose decisions matter most and whose tests need neither a cluster nor an API server.
var packages = []string{
	"controllers/memcached/rollout", "controllers/memcached/resources", "internal/memcached/...", "internal/snapshot/...",
}

// result is what gremlins writes for a package.
type result struct {
	Files []struct {
		Name      string     `json:"file_name"`
		Mutations []mutation `json:"mutations"`
	} `json:"files"`
}

type mutation struct {
	Type   string `json:"type"`
	Status string `json:"status"`
	Line   int    `json:"line"`
}

func main() {
	patterns := packages
	if len(os.Args) > 1 {
		patterns = os.Args[1:]
	}
	if err := run(patterns); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(patterns []string) error {
	began := time.Now()
	folders, err := foldersWithTests(patterns)
	if err != nil {
		return err
	}
	var table, lived strings.Builder
	for _, folder := range folders {
		r, err := mutate(folder)
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		counts := map[string]int{}
		for _, file := range r.Files {
			for _, m := range file.Mutations {
				counts[m.Status]++
				if m.Status == "LIVED" {
					kind := strings.ToLower(strings.ReplaceAll(m.Type, "_", " "))
					fmt.Fprintf(&lived, "- `%s/%s:%d`: %s\n", folder, file.Name, m.Line, kind)
				}
			}
		}
		killed, timedOut, survived, uncovered := counts["KILLED"], counts["TIMED OUT"], counts["LIVED"], counts["NOT COVERED"]
		fmt.Fprintf(&table, "| `%s` | %d | %d | %d | %d | %d |\n",
			folder, killed+timedOut+survived+uncovered, killed, timedOut, survived, uncovered)
	}
	if lived.Len() == 0 {
		lived.WriteString("None.\n")
	}
	page := fmt.Sprintf(page, table.String(), time.Now().UTC().Format(time.DateOnly),
		time.Since(began).Round(time.Minute), lived.String())
	return os.WriteFile(filepath.Join(root, "docs", "mutants.md"), []byte(page), 0o644)
}

const page = `# Mutation tests

| Package | Mutants | Killed | Timed out | Lived | Not covered |
|---|---:|---:|---:|---:|---:|
%s
` + "`make mutants`" + ` measured this on %s in %s and wrote it. Do not edit it.

A mutant is the package's code with one small change that
[gremlins](https://gremlins.dev) makes, such as ` + "`<` for `<=`" + `. It is killed when a test of the same package fails. It times
out when the tests take several times as long as without it. It lives when all tests pass. Code that only tests of other
packages run counts as not covered.

## Mutants that lived

%s`

// foldersWithTests returns the folders of the packages that have tests, relative to the root.
func foldersWithTests(patterns []string) ([]string, error) {
	args := []string{"list", "-f", `{{if .TestGoFiles}}{{.ImportPath}}{{end}}`}
	for _, p := range patterns {
		args = append(args, "./"+strings.TrimPrefix(p, "./"))
	}
	listed, err := goCommand(args...).Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	module, err := goCommand("list", "-m").Output()
	if err != nil {
		return nil, fmt.Errorf("reading the module's path: %w", err)
	}
	var folders []string
	for path := range strings.FieldsSeq(string(listed)) {
		folders = append(folders, strings.TrimPrefix(path, strings.TrimSpace(string(module))+"/"))
	}
	return folders, nil
}

// mutate runs gremlins over one package.
func mutate(folder string) (result, error) {
	var r result
	file := filepath.Join(os.TempDir(), "mutants-"+strings.ReplaceAll(folder, "/", "-")+".json")
	defer os.Remove(file)
	coefficient, err := timeoutCoefficient(folder)
	if err != nil {
		return r, err
	}
	// Not with --test-cpu: gremlins 0.6.0 passes it on in a way that makes each run fail, which counts as killed.
	gremlins := goCommand("tool", "-modfile=hack/tools/mutants/go.mod", "gremlins", "unleash", "./"+folder,
		"--invert-logical", "--workers=2", fmt.Sprintf("--timeout-coefficient=%d", coefficient), "--output="+file)
	gremlins.Stdout = os.Stdout
	if err := gremlins.Run(); err != nil {
		return r, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r)
}

// timeoutCoefficient returns the multiple of a test run's duration after which gremlins stops a mutant's tests. It leaves a
// minute for the build, which gremlins does not count: all mutants of a package with fast tests would time out.
func timeoutCoefficient(folder string) (int, error) {
	var took time.Duration
	for range 2 { // the first one builds
		began := time.Now()
		if out, err := goCommand("test", "-count=1", "-cover", "./"+folder).Output(); err != nil {
			return 0, fmt.Errorf("the tests fail without a mutant: %w\n%s", err, out)
		}
		took = time.Since(began)
	}
	return 4 + int(time.Minute/took), nil
}

func goCommand(args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	return cmd
}
