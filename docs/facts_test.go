package docs

import (
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
	"github.com/memcached-operator/memcached-operator/internal/ports"
)

// shards returns the shard of each of many keys.
func shards(t *testing.T, algorithm string, size int) []int {
	t.Helper()
	var servers []string
	for i := range size {
		servers = append(servers, fmt.Sprintf("cache-%d.default.svc.cluster.local:11211", i))
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

func TestPortsThatBypassTheMeshAreTheAgents(t *testing.T) {
	want := fmt.Sprintf(`excludeInboundPorts: "%d,%d"`, agentwire.Port, agentwire.HandoverPort)
	if text := section(t, read(t, "docs/networking.md"), "## Service meshes"); !strings.Contains(text, want) {
		t.Errorf("docs/networking.md lacks %s", want)
	}
}

func TestPoliciesOfTheUserAdmitWhatTheOperatorsDo(t *testing.T) {
	table := fmt.Sprint(rows(section(t, read(t, "docs/networking.md"), "## The network policy")))
	for _, port := range []int{agentwire.MemcachedPort, agentwire.Port, agentwire.HandoverPort, agentwire.MetricsPort, agentwire.DiscoveryPort} {
		if !strings.Contains(table, strconv.Itoa(port)) {
			t.Errorf("docs/networking.md admits no client to port %d with mode Disabled", port)
		}
	}
	if !strings.Contains(table, v1beta1.LabelName+": "+annotations.SnapshotName) {
		t.Error("docs/networking.md doesn't admit the pods of backups with mode Disabled")
	}
}

// A rule matches nothing, without an error, if no job adds its labels.
func TestScrapeJobsAddTheLabelsOfTheRules(t *testing.T) {
	var config struct {
		Jobs []struct {
			Name  string `json:"job_name"`
			Rules []struct {
				Label string `json:"target_label"`
			} `json:"relabel_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "config/prometheus/scrape.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	added := map[string]bool{}
	for _, job := range config.Jobs {
		added["job "+job.Name] = true
		for _, rule := range job.Rules {
			added[rule.Label] = true
		}
	}
	labels := regexp.MustCompile(`"targetLabel": "([a-z]+)"`).FindAllStringSubmatch(read(t, "controllers/monitoring/objects.go"), -1)
	if len(labels) != 3 {
		t.Fatalf("the operator's objects add the labels %q, and not memcached, shard and job", labels)
	}
	job := regexp.MustCompile(`job="([^"]+)"`).FindStringSubmatch(read(t, "config/monitoring/operator.rules.yaml"))[1]
	for _, label := range labels {
		if want := strings.ReplaceAll(label[1], "job", "job "+job); !added[want] {
			t.Errorf("config/prometheus/scrape.yaml doesn't add %s", want)
		}
	}
}

func TestTheOperatorsBoundsAreDocumented(t *testing.T) {
	want := fmt.Sprintf("at most %d connections at each of its two ports, and headers of at most %d KiB", ports.MaxConnections, ports.MaxHeader>>10+4) // what net/http adds
	if text := section(t, read(t, "docs/security.md"), "## Tenants"); !strings.Contains(text, want) {
		t.Errorf("docs/security.md lacks %s", want)
	}
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

// Clients with Jump sort the servers by their text.
func TestReplacedPodsMoveTheDocumentedShareOfKeys(t *testing.T) {
	table := rows(section(t, read(t, "docs/loki-mimir-tempo-thanos.md"), "## Why names"))
	table = table[slices.IndexFunc(table, func(row []string) bool { return row[0] == "3" }):]
	random := rand.New(rand.NewPCG(1, 2))
	address := func() string {
		return fmt.Sprintf("10.%d.%d.%d:11211", random.IntN(4), random.IntN(256), random.IntN(256))
	}
	// ofKeys returns the server of each key.
	ofKeys := func(servers []string) []string {
		r, err := ring.New("Jump", servers)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for i := range 100 {
			all = append(all, servers[r.Shard(fmt.Appendf(nil, "user:%d", i))])
		}
		return all
	}
	for _, row := range table {
		size, moved, total, most := number(t, row[0]), 0, 0, 0
		for range 3000 {
			var servers []string
			for range size {
				servers = append(servers, address())
			}
			before, i, other := ofKeys(servers), random.IntN(size), address()
			replaced := servers[i]
			servers[i] = other
			after, now := ofKeys(servers), 0
			for key := range before {
				if after[key] != before[key] && (before[key] != replaced || after[key] != other) {
					now++
				}
			}
			moved, total, most = moved+now, total+len(before), max(most, now)
		}
		if most != 100 {
			t.Errorf("with %d shards and addresses, one replacement moves up to %d%% of the keys, and not all", size, most)
		}
		if got, want := 100*moved/total, number(t, strings.TrimSuffix(row[1], "%")); math.Abs(float64(got-want)) > 2 {
			t.Errorf("with %d shards and addresses, %d%% of the keys move, and not %d%%", size, got, want)
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
		limit := resources.MemoryLimit(&v1beta1.MemcachedSpec{Memory: &memory, Config: v1beta1.MemcachedConfig{MaxConnections: &connections}})
		if got := fmt.Sprintf("%.0fMi", float64(limit.Value())/(1<<20)); got != row[2] {
			t.Errorf("%s and %d connections: the limit is %s, and not %s", row[0], connections, got, row[2])
		}
	}
}

// measured returns the cells of the first table of a text by the first one, without ranges and comparisons.
func measured(t *testing.T, text string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, row := range rows(text) {
		for i := range row {
			row[i] = strings.TrimSpace(regexp.MustCompile(`[\[(][^\])]*[\])]`).ReplaceAllString(row[i], ""))
		}
		if all[row[0]] == nil { // a later table has other numbers of items
			all[row[0]] = row[1:]
		}
	}
	return all
}

func TestFiguresOfTheDocumentsAreThoseOfTheBenchmarks(t *testing.T) {
	page := section(t, read(t, "docs/handover.md"), "## What each mode costs")
	eviction, compared := measured(t, read(t, "docs/bench-handover.md")), 0
	for _, row := range rows(page) {
		if len(row) != 4 {
			continue
		}
		compared++
		if want := eviction[row[0]]; len(want) < 3 || !slices.Equal(row[1:], want[:3]) {
			t.Errorf("%s: %v, want those of docs/bench-handover.md: %v", row[0], row[1:], want)
		}
	}
	if compared < 8 {
		t.Errorf("only %d rows were compared", compared)
	}
	upgrade := measured(t, read(t, "docs/bench-upgrade.md"))
	kept, lost, failed := upgrade["items kept, of those that no client read"], upgrade["hits lost, in seconds of full traffic"], upgrade["operations that failed after a retry"]
	for i, variant := range []string{"this operator", "by handover", "StatefulSet"} {
		if want := strings.Join([]string{"\n| " + variant, kept[i], lost[i], failed[i] + " |\n"}, " | "); !strings.Contains(read(t, "README.md"), want) {
			t.Errorf("README.md lacks the row of docs/bench-upgrade.md:%s", want)
		}
	}
	out, back, _ := strings.Cut(read(t, "docs/bench-scaling.md"), "| 4 → 3 shards |")
	left := measured(t, back)["keys with an old value for good"]
	if ours := []string{measured(t, out)["keys with an old value for good"][0], left[0]}; !slices.Equal(ours, []string{"0", "0"}) {
		t.Errorf("README.md says that no key had an old value for good, docs/bench-scaling.md that %q had", ours)
	}
	for page, want := range map[string]string{
		"README.md":       ", " + left[3] + " keys had an old value for good | [their items move](docs/scaling.md), if you declare how clients hash (from 1.1.0); no key had one |",
		"docs/scaling.md": left[0] + " keys instead of " + left[2] + " had an old value for good",
	} {
		if !strings.Contains(read(t, page), want) {
			t.Errorf("%s lacks the figures of docs/bench-scaling.md: %s", page, want)
		}
	}
	most := upgrade["steady state: operations per second at most"]
	ours, theirs := number(t, strings.ReplaceAll(most[0], ",", "")), number(t, strings.ReplaceAll(most[2], ",", ""))
	if want := fmt.Sprintf("| %d%% less than memcached in a StatefulSet: [at most %s operations per second, and %s]",
		(200*(theirs-ours)/theirs+1)/2, most[0], most[2]); !strings.Contains(page, want) {
		t.Errorf("docs/handover.md lacks the throughput of docs/bench-upgrade.md: %s", want)
	}
}

func TestChangesPageHasEveryGate(t *testing.T) {
	var want []string
	for _, gate := range regexp.MustCompile(`(?m)^\tGate\w+ +Gate = "(\w+)"$`).FindAllStringSubmatch(read(t, "api/v1beta1/conditions.go"), -1) {
		want = append(want, gate[1])
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

func TestSupportedVersionsAreThoseOfTheCode(t *testing.T) {
	table := map[string][]string{}
	for _, row := range rows(read(t, "docs/supported-versions.md")) {
		table[link.ReplaceAllString(strings.ReplaceAll(row[0], "[", ""), "")] = row[1:]
	}
	// found returns the texts that a pattern captures in a file.
	found := func(file, pattern string) (all []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1) {
			all = append(all, match[1])
		}
		return all
	}
	const rejections = "controllers/memcached/resources/image.go"
	nights := found(".github/workflows/nightly.yaml", `"(1\.\d+)\.\d+"`)
	for name, want := range map[string]string{
		"Kubernetes":                    fmt.Sprintf("%s or newer|%[1]s to %s,", nights[0], nights[len(nights)-1]),
		"memcached":                     found(rejections, `(?:CVE.*\. Use )(\S+) or newer`)[0] + " or newer|" + strings.Join(strings.Fields(found("Makefile", `MEMCACHED_VERSIONS \?= (.*)`)[0]), ", "),
		"memcached with TLS":            found(rejections, `spec\.tls: .*Use (\S+) or newer`)[0] + " or newer|",
		"memcached with authentication": found(rejections, `spec\.auth: .*Use (\S+) or newer`)[0] + " or newer|",
		"OLM":                           "v0|" + found("hack/cluster/olm/go.mod", `operator-lifecycle-manager v(\S+)`)[0],
		"OLM v1":                        found("docs/install.md", `requires OLM v(1\.\d+) or newer`)[0] + " or newer|" + found("hack/cluster/olmv1/go.mod", `operator-controller v(\S+)`)[0],
	} {
		supported, tested, _ := strings.Cut(want, "|")
		if row := table[name]; len(row) < 2 || !strings.HasPrefix(row[0], supported) || !strings.HasPrefix(row[1], tested) {
			t.Errorf("%s: docs/supported-versions.md has %q, want %q and %q", name, row, supported, tested)
		}
	}
}

// OLM creates the ClusterRoles of a bundle and never deletes them.
func TestRemovalNamesTheClusterRolesThatOLMKeeps(t *testing.T) {
	files, err := fs.Glob(os.DirFS(root), "bundle/manifests/*_clusterrole.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the bundle has the ClusterRoles %q: %v", files, err)
	}
	removal := section(t, read(t, "docs/install.md"), "## Remove")
	for _, file := range files {
		if name, _, _ := strings.Cut(path.Base(file), "_"); !strings.Contains(removal, name) {
			t.Errorf("docs/install.md doesn't name %s in \"Remove\"", name)
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
