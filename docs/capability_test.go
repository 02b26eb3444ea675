package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// criteria are the numbers of features and questions of each level on the page that
// the document links to.
var criteria = []struct {
	heading             string
	features, questions int
}{
	{"## Level 1: Basic Install", 5, 10},
	{"## Level 2: Seamless Upgrades", 5, 5},
	{"## Level 3: Full Lifecycle", 6, 10},
}

var code = regexp.MustCompile("`([^`]+)`")

func TestEveryCapabilityNamesATestThatExists(t *testing.T) {
	exists := testsOfTheProject(t)
	document := read(t, "capability-levels.md")
	for _, level := range criteria {
		var want, got []string
		for i := range level.features {
			want = append(want, fmt.Sprintf("F%d", i+1))
		}
		for i := range level.questions {
			want = append(want, fmt.Sprintf("Q%d", i+1))
		}
		for _, row := range rows(section(t, document, level.heading)) {
			if len(row) != 4 || row[1] == "" || row[2] == "" {
				t.Errorf("%s: the row %q needs a criterion and how it is met", level.heading, row)
				continue
			}
			got = append(got, row[0])
			named := code.FindAllStringSubmatch(row[3], -1)
			if len(named) == 0 {
				t.Errorf("%s, %s: no test is named", level.heading, row[0])
			}
			for _, name := range named {
				if !exists[name[1]] {
					t.Errorf("%s, %s: there is no test %s", level.heading, row[0], name[1])
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the criteria %v, want %v", level.heading, got, want)
		}
	}
}

func TestTheClaimedCapabilityIsTheLastDocumentedLevel(t *testing.T) {
	_, last, _ := strings.Cut(criteria[len(criteria)-1].heading, ": ")
	base := read(t, "../config/manifests/bases/memcached-operator.clusterserviceversion.yaml")
	if !strings.Contains(base, "\n    capabilities: "+last+"\n") {
		t.Errorf("the ClusterServiceVersion does not claim %s", last)
	}
	if !strings.Contains(read(t, "capability-levels.md"), "`capabilities: "+last+"`") {
		t.Errorf("capability-levels.md does not claim %s", last)
	}
}

var (
	goTest        = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	scorecardTest = regexp.MustCompile(`(?m)^\s+entrypoint: \[/scorecard-memcached, ([a-z-]+)\]$`)
)

// testsOfTheProject returns the names of all Go tests in all modules, and those of our
// custom scorecard tests.
func testsOfTheProject(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != "." || path == "bin" || path == "dist"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := fs.ReadFile(root, path)
		for _, match := range goTest.FindAllSubmatch(content, -1) {
			found[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range scorecardTest.FindAllStringSubmatch(read(t, "../config/scorecard/patches/memcached.config.yaml"), -1) {
		found[match[1]] = true
	}
	return found
}
