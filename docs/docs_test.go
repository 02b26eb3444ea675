// Package docs holds what a person reads, and tests that it is true where a program
// can tell.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// part returns what stands below a heading of a document, up to the next one of its
// level or above.
func part(t *testing.T, document, heading string) string {
	t.Helper()
	level := strings.Repeat("#", strings.IndexByte(heading, ' '))
	_, below, found := strings.Cut("\n"+document, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	if end := regexp.MustCompile(`(?m)^#{1,` + strconv.Itoa(len(level)) + `} `).FindStringIndex(below); end != nil {
		below = below[:end[0]]
	}
	return below
}

// rows returns the cells of all tables in a text, without heads and rules.
func rows(text string) [][]string {
	var all [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all
}

// constants returns the values of the string constants of a Go file whose names
// begin with a prefix.
func constants(t *testing.T, path, prefix string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, prefix) || i >= len(spec.Values) {
				continue
			}
			if literal, is := spec.Values[i].(*ast.BasicLit); is && literal.Kind == token.STRING {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
		}
		return true
	})
	return values
}

func TestEveryReasonOfABackupIsToldOfWithWhatToDo(t *testing.T) {
	const api = "../api/v1alpha1"
	want := slices.Concat(
		constants(t, filepath.Join(api, "snapshot_types.go"), "Reason"),
		constants(t, filepath.Join(api, "memcachedscheduledbackup_types.go"), "Reason"))
	if len(want) < 30 {
		t.Fatalf("the API has the reasons %v", want)
	}
	fine := []string{"Succeeded", "WaitingForTurn"}
	var got []string
	for _, row := range rows(part(t, read(t, "backup.md"), "## When it fails")) {
		if len(row) != 3 || row[1] == "" || row[2] == "" && !slices.Contains(fine, strings.Trim(row[0], "`")) {
			t.Errorf("the row %q does not say what it means and what to do", row)
		}
		got = append(got, strings.Trim(row[0], "`"))
	}
	for _, reason := range want {
		if !slices.Contains(got, reason) {
			t.Errorf("backup.md does not tell of %s", reason)
		}
	}
	for _, reason := range got {
		if !slices.Contains(want, reason) {
			t.Errorf("backup.md tells of %s, which the API does not have", reason)
		}
	}
}

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestExamplesHaveNoFieldThatTheAPIDoesNotHave(t *testing.T) {
	kinds := map[string]func() any{
		"Memcached":                func() any { return new(v1alpha1.Memcached) },
		"MemcachedBackup":          func() any { return new(v1alpha1.MemcachedBackup) },
		"MemcachedScheduledBackup": func() any { return new(v1alpha1.MemcachedScheduledBackup) },
		"MemcachedRestore":         func() any { return new(v1alpha1.MemcachedRestore) },
	}
	checked := 0
	for _, match := range example.FindAllStringSubmatch(read(t, "backup.md"), -1) {
		for text := range strings.SplitSeq(match[1], "---\n") {
			var object struct{ APIVersion, Kind string }
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			if object.APIVersion != v1alpha1.GroupVersion.String() {
				continue
			}
			checked++
			if make, known := kinds[object.Kind]; !known {
				t.Errorf("there is no kind %s", object.Kind)
			} else if err := yaml.UnmarshalStrict([]byte(text), make()); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
		}
	}
	if checked < 3 {
		t.Errorf("backup.md has %d examples", checked)
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

func TestWhatADocumentLinksToIsThere(t *testing.T) {
	documents, err := filepath.Glob("*.md")
	if err != nil || len(documents) < 4 {
		t.Fatalf("the documents are %v, %v", documents, err)
	}
	for _, document := range append(documents, "../README.md") {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", document, match[1], err)
			}
		}
	}
}
