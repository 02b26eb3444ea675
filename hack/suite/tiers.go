package main

import (
	"fmt"
	"slices"
	"strings"
)

// lane is a queue: of the tiers of a lane, one runs at a time.
type lane string

const (
	computes  lane = "computes"  // needs a processor all the time
	processes lane = "processes" // waits most of the time, for programs, some of which have little memory
	onCluster lane = "cluster"   // waits most of the time, for the cluster
)

// suite is a list of tiers.
type suite string

const (
	quick      suite = "quick"   // "make test"
	code       suite = "code"    // what needs neither root nor a cluster, without lint and the race detector
	onACluster suite = "cluster" // what needs one
	all        suite = "all"     // "make test-all"
	onDemand   suite = "ondemand"
)

// tier is a part of the tests that runs, is measured and reports as one.
type tier struct {
	name   string
	suites []suite
	what   string // what it tests
	lane   lane   // the table's order is that of a lane
	nice   int    // the priority of its processes
	needs  []string
	// The tests of packages of a module, with flags of "go test" and of the tests.
	module   string
	packages []string
	flags    []string
	race     bool
	mounts   bool // its tests mount volumes and run agents under other users, for which a user other than root needs a namespace
	// Or else the target of the Makefile that runs it. What it prints in the format of "go test -json" is read so.
	target string
	// A failure is never repeated: a test that finds a lost item or a data race once has found it.
	strict bool
}

// tiers are all tiers. CONTRIBUTING.md has the same names, in this order.
var tiers = []tier{
	{name: "generated", suites: []suite{quick, code, all}, lane: computes, nice: 10, target: "check-generated",
		what: "the files that are generated from `api` and `controllers` are up to date"},
	{name: "vet", suites: []suite{quick, code, all}, lane: computes, nice: 10, target: "check-vet",
		what: "`go vet`, and the format of all files"},
	{name: "unit", suites: []suite{quick, code, all}, lane: computes, nice: 5, module: ".", packages: []string{".", "./api/...", "./cmd/...", "./config/...", "./controllers/...", "./docs/...", "./internal/..."}, flags: []string{"-timeout=20m"},
		what: "the operator's module, with the documents"},
	{name: "apiserver", suites: []suite{code, all}, lane: computes, nice: 5, needs: []string{forAPI}, module: "test", packages: []string{"./apiserver", "./gitops"}, flags: []string{"-timeout=20m"},
		what: "what depends on a real API server: admission, conflicts, permissions, informers; and what kstatus and Argo CD read"},
	{name: "scenarios", suites: []suite{quick}, lane: computes, nice: 5, module: "test", packages: []string{"./sim", "./sim/sabotage"}, strict: true,
		flags: []string{"-count=1", "-run=^(TestScenariosConverge|TestDefectsOccurInTheSource)$", "-timeout=20m"},
		what:  "the scenarios of the simulated cluster, without faults"},
	{name: "process", suites: []suite{quick, code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./process"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"},
		what:  "the agent with real memcached processes"},
	{name: "checker", suites: []suite{code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./checker"}, mounts: true, strict: true,
		flags: []string{"-count=1", "-timeout=15m"},
		what:  "that no item is lost or wrong in handovers under load"},
	{name: "facts", suites: []suite{code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./facts"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"},
		what:  "what the operator expects of each version of memcached"},
	{name: "peers", suites: []suite{code, all}, lane: processes, needs: []string{forProcess, forPeers}, module: "test", packages: []string{"./peers"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"},
		what:  "the agent with programs of others: clients, an S3 server, promtool and memcached_exporter"},
	{name: "sim", suites: []suite{code, all}, lane: computes, nice: 5, module: "test", packages: []string{"./sim", "./sim/sabotage"}, strict: true,
		flags: []string{"-count=1", "-timeout=40m", "-skip=^TestOracleFindsSabotage$"},
		what:  "the operator in a simulated cluster with faults ([reliability](docs/maintainers/reliability.md))"},
	{name: "race", suites: []suite{all}, lane: computes, nice: 10, module: ".", packages: raced, race: true, strict: true,
		// A test that measures memory.
		flags: []string{"-shuffle=on", "-timeout=30m", "-skip=^TestManifestOfAnySizeFitsIntoMemoryOfJob$"},
		what:  "the packages with goroutines, with the race detector and in a random order"},
	{name: "race-sim", suites: []suite{all}, lane: computes, nice: 10, module: "test", packages: []string{"./sim"}, race: true, strict: true,
		flags: []string{"-count=1", "-timeout=30m", "-run=^TestInvariantsHoldForRandomSeeds$", "-seeds=3"},
		what:  "the whole operator in a simulated cluster, with the race detector"},
	{name: "sabotage", suites: []suite{onDemand}, lane: computes, nice: 10, module: "test", packages: []string{"./sim/sabotage"},
		flags: []string{"-count=1", "-timeout=60m"},
		what:  "that the simulation finds faults of the planner, one at a time; nightly"},
	{name: "tenants", suites: []suite{code, all}, lane: computes, nice: 5, needs: []string{forAPI}, module: "bench", packages: []string{"./tenants"},
		flags: []string{"-count=1", "-timeout=30m"},
		what:  "that a tenant does not use up the operator"},
	{name: "tools", suites: []suite{code, all}, lane: computes, nice: 15, target: "check-tools",
		what: "the plugin for kubectl, the programs in `hack` and all that they generate, the benchmarks' own code and the test libraries"},
	{name: "lint", suites: []suite{all}, lane: computes, nice: 15, target: "check-lint",
		what: "golangci-lint, the wording, `go.mod` files, workflows, commit subjects, and the site of the documents in a browser"},
	{name: "e2e", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "tier-e2e", strict: true,
		what: "the operator on a cluster, from a pod: the local one, or that in `KUBECONFIG`"},
	{name: "hostile", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forProcess, forCluster}, target: "tier-hostile", strict: true,
		what: "the life of caches on the local cluster with policies, quotas, limit ranges and sidecars that are drawn at random"},
	{name: "host", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forProcess, forCluster, forAPI, forPeers}, target: "tier-host",
		what: "the local cluster from outside: OLM, nodes that come and go, processes that are killed, monitoring"},
	{name: "rights", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forCluster}, module: "test", packages: []string{"./rights"}, flags: []string{"-count=1"}, strict: true,
		what: "by the audit log of the tests on the local cluster, that the operator needs all its permissions and no others"},
	{name: "scorecard", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "scorecard",
		what: "our custom scorecard tests, in their image as operator-sdk runs them"},
	{name: "olmv1", suites: []suite{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "tier-olmv1",
		what: "the operator on the local cluster with OLM v1; it requires a cluster without Memcacheds"},
}

// raced are the packages whose code starts goroutines or locks.
var raced = []string{
	"./controllers/cache", "./controllers/enqueue", "./controllers/memcached", "./controllers/metrics", "./controllers/monitoring",
	"./controllers/transfer", "./controllers/upgradeable",
	"./internal/agent/...", "./internal/connlimit", "./internal/handover", "./internal/memcached/fake", "./internal/metricsauth", "./internal/peerlink", "./internal/scaling", "./internal/serverclock",
	"./internal/simtest", "./internal/snapshot/...",
}

// The sets of "bin/cluster env", in the order in which they are built: memcached first, since its download is fast, and
// the cluster before the API server that it contains.
const (
	forProcess = "process"
	forCluster = "cluster"
	forAPI     = "api"
	forPeers   = "peers"
)

var sets = []string{forProcess, forCluster, forAPI, forPeers}

// selectTiers returns the tiers of a suite, or those with the given names.
func selectTiers(names []string) ([]tier, error) {
	var selected []tier
	for _, name := range names {
		found := false
		for _, t := range tiers {
			if t.name == name || slices.Contains(t.suites, suite(name)) {
				selected, found = append(selected, t), true
			}
		}
		if !found {
			var known []string
			for _, t := range tiers {
				known = append(known, t.name)
			}
			return nil, fmt.Errorf("there is no tier %q: there are %s, and the suites quick, code, cluster and all", name, strings.Join(known, ", "))
		}
	}
	return selected, nil
}

// needed returns the sets that some of the tiers need, in the order in which they are built.
func needed(selected []tier) []string {
	var result []string
	for _, set := range sets {
		if slices.ContainsFunc(selected, func(t tier) bool { return slices.Contains(t.needs, set) }) {
			result = append(result, set)
		}
	}
	return result
}
