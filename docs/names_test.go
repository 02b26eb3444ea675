package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	goTest        = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	testName      = regexp.MustCompile(`\bTest[A-Z]\w+`)
	scorecardTest = regexp.MustCompile(`(?m)^\s+entrypoint: \[/scorecard-memcached, ([a-z-]+)\]$`)
)

// testsOfTheProject returns the packages of each Go test in all modules, and of our custom
// scorecard tests.
func testsOfTheProject(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	tree := os.DirFS(root)
	err := fs.WalkDir(tree, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && file != "." || file == "bin" || file == "dist"):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(tree, file)
		for _, match := range goTest.FindAllSubmatch(content, -1) {
			found[string(match[1])] = append(found[string(match[1])], path.Dir(file))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range scorecardTest.FindAllStringSubmatch(read(t, "config/scorecard/patches/memcached.config.yaml"), -1) {
		found[match[1]] = append(found[match[1]], "config/scorecard")
	}
	return found
}

func TestEveryTestThatADocumentNamesExistsOnce(t *testing.T) {
	exists := testsOfTheProject(t)
	texts := markdown(t)
	base := "config/manifests/bases/memcached-operator.clusterserviceversion.yaml"
	texts[base] = read(t, base)
	named := 0
	for document, text := range texts {
		for _, name := range testName.FindAllString(text, -1) {
			named++
			switch packages := exists[name]; {
			case len(packages) == 0:
				t.Errorf("%s names %s, and there is no such test", document, name)
			case len(packages) > 1:
				t.Errorf("%s names %s, which is ambiguous: %v have a test of that name", document, name, packages)
			}
		}
	}
	if named < 60 {
		t.Errorf("only %d names of tests were found", named)
	}
}

func TestEveryTestResultNamesItsTest(t *testing.T) {
	results := rows(read(t, "docs/test-results.md"))
	if len(results) < 15 {
		t.Fatalf("%d rows", len(results))
	}
	for _, row := range results {
		// Another source is a document, whose program measured the result.
		if len(row) != 3 || !testName.MatchString(row[2]) && !link.MatchString(row[2]) {
			t.Errorf("the row %q names no test", row)
		}
	}
}

func TestEveryFoundBugNamesItsTest(t *testing.T) {
	var scenarios strings.Builder
	files, err := fs.Glob(os.DirFS(root), "test/sim/scenarios.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		scenarios.WriteString(read(t, file))
	}
	bugs := rows(section(t, read(t, "docs/maintainers/reliability.md"), "## What we found"))
	if len(bugs) < 5 {
		t.Fatalf("%d rows", len(bugs))
	}
	for _, row := range bugs {
		name := code.FindStringSubmatch(row[len(row)-1])
		if len(row) != 3 || name == nil {
			t.Errorf("the row %q names no test", row)
		} else if !testName.MatchString(name[1]) && !strings.Contains(scenarios.String(), `"`+name[1]+`"`) {
			t.Errorf("there is no scenario %q in test/sim", name[1])
		}
	}
}
