package docs

import (
	"fmt"
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
	without             int // a number that no question has
}{
	{"## Level 1: Basic Install", 5, 10, 0},
	{"## Level 2: Seamless Upgrades", 5, 5, 0},
	{"## Level 3: Full Lifecycle", 6, 10, 0},
	{"## Level 4: Deep Insights", 4, 8, 3},
}

func TestEveryCapabilityNamesATestThatExists(t *testing.T) {
	exists := testsOfTheProject(t)
	document := read(t, "docs/maintainers/capability-levels.md")
	for _, level := range criteria {
		var want, got []string
		for i := range level.features {
			want = append(want, fmt.Sprintf("F%d", i+1))
		}
		for i := range level.questions {
			if i+1 != level.without {
				want = append(want, fmt.Sprintf("Q%d", i+1))
			}
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
				if len(exists[name[1]]) == 0 {
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
	base := read(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml")
	if !strings.Contains(base, "\n    capabilities: "+last+"\n") {
		t.Errorf("the ClusterServiceVersion does not claim %s", last)
	}
	if !strings.Contains(read(t, "docs/maintainers/capability-levels.md"), "`capabilities: "+last+"`") {
		t.Errorf("capability-levels.md does not claim %s", last)
	}
}

// item is the bold beginning of an item in the description of the ClusterServiceVersion.
var item = regexp.MustCompile(`(?m)^ +\* (?:\*\*(.+?)\*\*)?`)

func TestEveryStatementOfTheClusterServiceVersionNamesItsTest(t *testing.T) {
	exists := testsOfTheProject(t)
	var want, got []string
	for _, match := range item.FindAllStringSubmatch(read(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml"), -1) {
		want = append(want, match[1])
	}
	for _, row := range rows(section(t, read(t, "docs/maintainers/capability-levels.md"), "## What the ClusterServiceVersion states")) {
		got = append(got, row[0])
		named := code.FindAllStringSubmatch(row[len(row)-1], -1)
		for _, name := range named {
			if len(exists[name[1]]) == 0 {
				t.Errorf("%s: there is no test %s", row[0], name[1])
			}
		}
		if len(named) == 0 {
			t.Errorf("%s: no test is named", row[0])
		}
	}
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("the table has the statements %q, want those of the ClusterServiceVersion %q", got, want)
	}
}
