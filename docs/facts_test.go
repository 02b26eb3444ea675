package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/testcrd"
)

// shards returns the shard of each of many keys.
func shards(t *testing.T, algorithm string, size int) []int {
	t.Helper()
	var servers []string
	for i := range size {
		servers = append(servers, fmt.Sprintf("cache-%d.default.svc:11211", i))
	}
	r, err := ring.New(algorithm, servers)
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for i := range 50_000 {
		all = append(all, r.Shard(fmt.Appendf(nil, "user:%d", i)))
	}
	return all
}

func TestScalingMovesTheDocumentedShareOfKeys(t *testing.T) {
	table := rows(section(t, read(t, "docs/connect.md"), "## What scaling moves"))
	if len(table) < 4 {
		t.Fatalf("the table is %q", table)
	}
	for _, row := range table {
		from, to := number(t, row[0]), number(t, row[1])
		for i, algorithm := range []string{"Ketama", "Rendezvous", "Jump", "Modulo"} {
			before, after := shards(t, algorithm, from), shards(t, algorithm, to)
			moved := 0
			for key := range before {
				if before[key] != after[key] {
					moved++
				}
			}
			// Ketama's points give the servers unequal shares of the keys.
			if got, want := 100*moved/len(before), number(t, strings.TrimSuffix(row[2+i], "%")); math.Abs(float64(got-want)) > 4 {
				t.Errorf("from %d to %d shards with %s, %d%% of the keys move, and not %d%%", from, to, algorithm, got, want)
			}
		}
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSizingTableFollowsTheFormula(t *testing.T) {
	table := rows(section(t, read(t, "docs/sizing.md"), "## Memory"))
	if len(table) < 4 {
		t.Fatalf("the table is %q", table)
	}
	for _, row := range table {
		memory, connections := resource.MustParse(row[0]), int32(number(t, row[1]))
		limit := resources.MemoryLimit(&v1alpha1.MemcachedSpec{Memory: &memory, MaxConnections: &connections})
		if got := fmt.Sprintf("%.0fMi", float64(limit.Value())/(1<<20)); got != row[2] {
			t.Errorf("%s and %d connections: the limit is %s, and not %s", row[0], connections, got, row[2])
		}
	}
}

func TestChangesPageHasEveryGate(t *testing.T) {
	status := testcrd.Schema(t, "..", "memcacheds").Properties["status"]
	var want []string
	for _, gate := range status.Properties["update"].Properties["gate"].Enum {
		want = append(want, strings.Trim(string(gate.Raw), `"`))
	}
	if len(want) < 5 {
		t.Fatalf("the API has the gates %v", want)
	}
	var got []string
	for _, row := range rows(section(t, read(t, "docs/changes.md"), "## The gates")) {
		got = append(got, strings.Trim(row[0], "`"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has the gates\n%v, want\n%v", got, want)
	}
}

func TestTheRequiredKubernetesIsThatOfTheBundle(t *testing.T) {
	base := read(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml")
	_, version, _ := strings.Cut(base, "\n  minKubeVersion: ")
	version, _, found := strings.Cut(version, ".0\n")
	if !found {
		t.Fatal("the base has no minKubeVersion")
	}
	for _, document := range []string{"README.md", "docs/install.md"} {
		if !strings.Contains(read(t, document), "Kubernetes "+version+" or newer") {
			t.Errorf("%s doesn't require Kubernetes %s or newer", document, version)
		}
	}
}

func TestEveryMetricOfBackupsIsDocumented(t *testing.T) {
	described := section(t, read(t, "docs/backup-schedule.md"), "## Metrics")
	metrics := regexp.MustCompile(`desc\("([a-z_]+)"`).FindAllStringSubmatch(read(t, "controllers/backup/metrics.go"), -1)
	if len(metrics) < 5 {
		t.Fatalf("the metrics are %v", metrics)
	}
	var names []string
	for _, match := range metrics {
		names = append(names, match[1])
		if !regexp.MustCompile("`" + match[1] + "[`{]").MatchString(described) {
			t.Errorf("docs/backup-schedule.md doesn't describe %s", match[1])
		}
	}
	for _, match := range regexp.MustCompile("`([a-z_]+)(\\{[^`]*)?`").FindAllStringSubmatch(strings.ReplaceAll(described, "`namespace`, `memcached`", ""), -1) {
		if !slices.Contains(names, match[1]) {
			t.Errorf("docs/backup-schedule.md describes %s, which doesn't exist", match[1])
		}
	}
}

// cells returns the row of a table whose first cell begins with a text.
func cells(t *testing.T, document, begin string) []string {
	t.Helper()
	for _, row := range rows(read(t, document)) {
		if strings.HasPrefix(strings.Trim(row[0], "*… "), begin) {
			return row
		}
	}
	t.Fatalf("%s has no row %q", document, begin)
	return nil
}

var figure = regexp.MustCompile(`\d+(?:,\d{3})*(?:\.\d+)?`)

// figures returns the numbers of a text as they are written, without separators of thousands.
func figures(text string) (all []string) {
	for _, match := range figure.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(match, ",", ""))
	}
	return all
}

func TestREADMEHasTheFiguresOfTheBenchmarks(t *testing.T) {
	readme := strings.Join(strings.Fields(read(t, "README.md")), " ")
	const lost = "hits lost, in seconds of full traffic"
	upgrade, eviction := cells(t, "docs/bench-upgrade.md", lost), cells(t, "docs/bench-handover.md", lost)
	first := func(cell string) string { return figures(cell)[0] }
	// The columns are this operator, a variant of it or two, and the StatefulSet.
	want := fmt.Sprintf("[an upgrade](docs/bench-upgrade.md) cost a StatefulSet %s seconds' worth of cache hits and this operator %s, "+
		"and [the eviction of all pods](docs/bench-handover.md) %s and %s.", first(upgrade[3]), first(upgrade[1]), first(eviction[4]), first(eviction[1]))
	if !strings.Contains(readme, want) {
		t.Errorf("README.md doesn't say %q", want)
	}
}

func TestResultsOfBenchmarksAreThoseOfTheirDocuments(t *testing.T) {
	checked := 0
	for _, row := range rows(read(t, "docs/test-results.md")) {
		source := link.FindStringSubmatch(row[len(row)-1])
		if source == nil || !strings.HasPrefix(source[1], "bench-") {
			continue
		}
		measured := figures(read(t, "docs/"+source[1]))
		for _, got := range figures(row[1]) {
			checked++
			_, digits, _ := strings.Cut(got, ".")
			if !slices.ContainsFunc(measured, func(m string) bool {
				value, err := strconv.ParseFloat(m, 64)
				return err == nil && strconv.FormatFloat(value, 'f', len(digits), 64) == got
			}) {
				t.Errorf("%s has no %s, which is in the row %q", source[1], got, row)
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d figures were found", checked)
	}
}

// A new run of the benchmark may change the formula, and the figure in the sentence after it.
func TestMemoryOfTheOperatorFollowsTheDocumentedFormula(t *testing.T) {
	text := section(t, read(t, "docs/sizing.md"), "## The operator")
	formula := regexp.MustCompile(`> (\d+)Mi \+ (\d+)Ki × number of shards\n`).FindStringSubmatch(text)
	claim := regexp.MustCompile(`limit of (\d+)Mi is enough for 1,000 Memcacheds of three shards: with them, it used at most (\d+)\s+MiB`).FindStringSubmatch(text)
	if formula == nil || claim == nil {
		t.Fatalf("the section has no formula or no figure:\n%s", text)
	}
	needs := func(memcacheds int) float64 {
		return math.Round(float64(number(t, formula[1])) + float64(3*memcacheds*number(t, formula[2]))/1024)
	}
	sizes := cells(t, "docs/bench-scale.md", "Create")
	header := regexp.MustCompile(`(?m)^\| Memcacheds \|(.*)\|$`).FindStringSubmatch(read(t, "docs/bench-scale.md"))
	counts := figures(header[1])
	for i := range counts {
		peak := 0
		for _, row := range rows(read(t, "docs/bench-scale.md")) {
			if strings.Contains(row[0], "memory and peak") {
				peak = max(peak, number(t, figures(row[1+i])[1]))
			}
		}
		if want := needs(number(t, counts[i])); peak < 30 || float64(peak) > want {
			t.Errorf("%s Memcacheds needed %d MiB, more than %.0f MiB by the formula", counts[i], peak, want)
		}
		if counts[i] == "1000" && strconv.Itoa(peak) != claim[2] {
			t.Errorf("1,000 Memcacheds needed at most %d MiB, and docs/sizing.md says %s", peak, claim[2])
		}
	}
	if len(counts) < 3 || len(sizes) != 1+len(counts) {
		t.Errorf("the benchmark has the columns %v", counts)
	}
	if needs(1000) > float64(number(t, claim[1])) {
		t.Errorf("by the formula, 1,000 Memcacheds need %.0f MiB, more than %s", needs(1000), claim[1])
	}
	if limit := "memory: " + claim[1] + "Mi\n"; !strings.Contains(read(t, "config/manager/manager.yaml"), limit) {
		t.Errorf("config/manager/manager.yaml has no %q", limit)
	}
}

func TestReliabilityHasTheNumbersOfTheSimulation(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, "docs/reliability.md")), " ")
	file, err := parser.ParseFile(token.NewFileSet(), root+"/test/sim/scenarios.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	scenarios := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if spec, is := node.(*ast.ValueSpec); is && spec.Names[0].Name == "scenarios" {
			scenarios = len(spec.Values[0].(*ast.CompositeLit).Elts)
		}
		return true
	})
	covering := regexp.MustCompile(`\nconst covering = (\d+)\n`).FindStringSubmatch(read(t, "test/sim/seeds_test.go"))
	if covering == nil {
		t.Fatal("the seeds of the simulation are not where they were")
	}
	for _, want := range []string{
		fmt.Sprintf("%d named scenarios", scenarios),
		"`make test` runs all scenarios. `make test-all` also runs " + covering[1] + " seeds of 500 steps",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/reliability.md doesn't say %q", want)
		}
	}
	soaked := regexp.MustCompile(`such runs executed ([\d,]+) seeds of 500 steps`).FindStringSubmatch(text)
	if soaked == nil || !strings.Contains(read(t, "docs/test-results.md"), "in 500 steps of each of "+soaked[1]+" seeds") {
		t.Errorf("docs/test-results.md doesn't have the seeds of docs/reliability.md: %q", soaked)
	}
}

// durations are those of docs/changes.md.
var durations = []string{"about 0.1 s", "one to two seconds", "up to a second"}

func TestDocumentsAgreeForHowLongAShardIsUnavailable(t *testing.T) {
	unavailable := regexp.MustCompile(`unavailable(?: once)?,? for ((?:about |up to |at most )?(?:a|an|one|two|three|[\d.]+)(?: to \w+)? (?:seconds?|s|minutes?)\b)`)
	found := map[string]bool{}
	for document, text := range markdown(t) {
		if strings.HasPrefix(document, "docs/adr/") || strings.HasPrefix(document, "docs/bench-") || document == "docs/test-results.md" || document == "docs/api.md" {
			continue // measurements, and what the API says
		}
		for _, match := range unavailable.FindAllStringSubmatch(strings.Join(strings.Fields(text), " "), -1) {
			found[match[1]] = true
			if !slices.Contains(durations, match[1]) {
				t.Errorf("%s: a shard is %s, and docs/changes.md has other durations: %q", document, match[0], durations)
			}
		}
	}
	if len(found) != len(durations) {
		t.Errorf("the documents name %v, want each of %q", found, durations)
	}
}

func TestCapabilityLevelsHaveTheNumberOfAlerts(t *testing.T) {
	alerts := regexp.MustCompile(`severity: (critical|warning),`).FindAllString(read(t, "controllers/monitoring/rules.go"), -1)
	if want := fmt.Sprintf("| useful alerts | %d about ", len(alerts)); len(alerts) < 10 || !strings.Contains(read(t, "docs/maintainers/capability-levels.md"), want) {
		t.Errorf("docs/maintainers/capability-levels.md doesn't say %q", want)
	}
}

func TestResultsAreOfTheClustersKubernetes(t *testing.T) {
	version := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v(1\.\d+)\.`).FindStringSubmatch(read(t, "hack/cluster/kubernetes/go.mod"))
	if version == nil || !strings.Contains(read(t, "docs/test-results.md"), "with Kubernetes "+version[1]+".") {
		t.Errorf("docs/test-results.md doesn't name Kubernetes %v", version)
	}
}

func TestEverySourceOfTheComparisonIsCited(t *testing.T) {
	text := read(t, "docs/comparison.md")
	sources := map[string]bool{}
	for _, row := range rows(section(t, text, "## Sources")) {
		sources[row[0]] = true
	}
	cited := map[string]bool{}
	for _, match := range regexp.MustCompile(`\[(\d+)\]`).FindAllStringSubmatch(text, -1) {
		cited[match[1]] = true
	}
	if len(sources) < 10 || !maps.Equal(sources, cited) {
		t.Errorf("the page cites %v and has the sources %v", cited, sources)
	}
}

func TestEveryBenchmarkIsInTheTableOfContributing(t *testing.T) {
	var want, got []string
	for _, match := range regexp.MustCompile(`(?m)^(bench-[a-z -]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		for target := range strings.FieldsSeq(match[1]) {
			want = append(want, "`make "+target+"`")
		}
	}
	for _, row := range rows(read(t, "CONTRIBUTING.md")) {
		if !strings.HasPrefix(row[0], "`make bench-") {
			continue
		}
		got = append(got, row[0])
		if slices.Contains(row, "") {
			t.Errorf("the row %q has an empty cell", row)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 5 || !slices.Equal(got, want) {
		t.Errorf("CONTRIBUTING.md has the benchmarks\n%v, want\n%v", got, want)
	}
}

// packagesOf returns the packages that the first column of a table names: `a/b`, `c` and `a/{b,c}`.
func packagesOf(table [][]string) map[string]bool {
	named := map[string]bool{}
	for _, row := range table {
		parent := ""
		for _, match := range code.FindAllStringSubmatch(row[0], -1) {
			name := match[1]
			if !strings.Contains(name, "/") {
				name = path.Join(parent, name)
			}
			before, rest, isList := strings.Cut(name, "{")
			list, after, _ := strings.Cut(rest, "}")
			if !isList {
				list = ""
			}
			for choice := range strings.SplitSeq(list, ",") {
				named[before+choice+after] = true
			}
			parent = path.Dir(name)
		}
	}
	return named
}

func TestTablesOfPackagesAreComplete(t *testing.T) {
	packages := map[string]bool{}
	for _, directory := range []string{"controllers", "internal"} {
		err := fs.WalkDir(os.DirFS(root), directory, func(file string, _ fs.DirEntry, err error) error {
			// A package such as shardtest is part of the one it is for.
			if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(path.Base(path.Dir(file)), "test") {
				packages[path.Dir(file)] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for document, heading := range map[string]string{"CONTRIBUTING.md": "## Where things are", "docs/adr/0010-package-layout.md": "## Decision"} {
		named := packagesOf(rows(section(t, read(t, document), heading)))
		for name := range packages {
			if name != "controllers" && !named[name] {
				t.Errorf("%s doesn't name %s", document, name)
			}
		}
	}
	if len(packages) < 30 {
		t.Errorf("only %d packages were found", len(packages))
	}
}
