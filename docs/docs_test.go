// Package docs tests the documents against the API and the repository.
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

// section returns the text below a heading, up to the next heading of the same level
// or above.
func section(t *testing.T, document, heading string) string {
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

// rows returns the cells of all table rows in a text, without headers.
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

// constants returns the values of the string constants of a Go file whose names start
// with prefix.
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

func TestTheBackupGuideExplainsEveryReason(t *testing.T) {
	const api = "../api/v1alpha1"
	want := slices.Concat(
		[]string{v1alpha1.ReasonNoShards},
		constants(t, filepath.Join(api, "snapshot_types.go"), "Reason"),
		constants(t, filepath.Join(api, "memcachedscheduledbackup_types.go"), "Reason"))
	if len(want) < 30 {
		t.Fatalf("the API has the reasons %v", want)
	}
	noAction := []string{"Succeeded", "WaitingForSchedule"}
	var got []string
	for _, row := range rows(section(t, read(t, "backup.md"), "## When it fails")) {
		if len(row) != 3 || row[1] == "" || row[2] == "" && !slices.Contains(noAction, strings.Trim(row[0], "`")) {
			t.Errorf("the row %q does not say what it means and what to do", row)
		}
		got = append(got, strings.Trim(row[0], "`"))
	}
	for _, reason := range want {
		if !slices.Contains(got, reason) {
			t.Errorf("backup.md does not explain %s", reason)
		}
	}
	for _, reason := range got {
		if !slices.Contains(want, reason) {
			t.Errorf("backup.md explains %s, which the API does not have", reason)
		}
	}
}

var example = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestExamplesUseOnlyFieldsOfTheAPI(t *testing.T) {
	kinds := map[string]func() any{
		"Memcached":                func() any { return new(v1alpha1.Memcached) },
		"MemcachedBackup":          func() any { return new(v1alpha1.MemcachedBackup) },
		"MemcachedScheduledBackup": func() any { return new(v1alpha1.MemcachedScheduledBackup) },
		"MemcachedRestore":         func() any { return new(v1alpha1.MemcachedRestore) },
	}
	for document, least := range map[string]int{"../README.md": 1, "user-guide.md": 2, "backup.md": 4} {
		checked := 0
		for _, match := range example.FindAllStringSubmatch(read(t, document), -1) {
			for text := range strings.SplitSeq(match[1], "---\n") {
				var object struct{ APIVersion, Kind string }
				if err := yaml.Unmarshal([]byte(text), &object); err != nil {
					t.Errorf("%s: %v in\n%s", document, err, text)
				}
				if object.APIVersion != v1alpha1.GroupVersion.String() {
					continue
				}
				checked++
				if newObject, known := kinds[object.Kind]; !known {
					t.Errorf("%s: there is no kind %s", document, object.Kind)
				} else if err := yaml.UnmarshalStrict([]byte(text), newObject()); err != nil {
					t.Errorf("%s: %v in\n%s", document, err, text)
				}
			}
		}
		if checked < least {
			t.Errorf("%s has %d examples, want at least %d", document, checked, least)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// anchors returns the anchors that GitHub gives to the headings of a document.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(document, -1) {
		kept := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		found["#"+strings.ReplaceAll(kept, " ", "-")] = true
	}
	return found
}

func TestLinksOfTheDocumentsResolve(t *testing.T) {
	documents := []string{"../README.md", "../CONTRIBUTING.md"}
	for _, pattern := range []string{"*.md", "adr/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 4 {
			t.Fatalf("the documents %s are %v, %v", pattern, found, err)
		}
		documents = append(documents, found...)
	}
	for _, document := range documents {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target := document
			if match[1] != "" {
				target = filepath.Join(filepath.Dir(document), match[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", document, match[1], err)
			} else if match[2] != "" && !anchors(read(t, target))[match[2]] {
				t.Errorf("%s links to %s%s, and %s has no such heading", document, match[1], match[2], target)
			}
		}
	}
}
