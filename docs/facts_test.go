package docs

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
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
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(read(t, "config/crd/bases/cache.memcached-operator.io_memcacheds.yaml")), &crd); err != nil {
		t.Fatal(err)
	}
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
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
