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

// The suites are lists of tiers.
const (
	quick      = "quick"   // "make test"
	code       = "code"    // what needs neither root nor a cluster, without lint and the race detector
	onACluster = "cluster" // what needs one
	all        = "all"     // "make test-all"
)

// tier is a part of the tests that runs, is measured and reports as one.
type tier struct {
	name   string
	suites []string
	lane   lane // the table's order is that of a lane
	nice   int  // the priority of its processes
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

// tiers are all tiers. CONTRIBUTING.md says what they test, in this order.
var tiers = []tier{
	{name: "generated", suites: []string{quick, code, all}, lane: computes, nice: 10, target: "check-generated"},
	{name: "vet", suites: []string{quick, code, all}, lane: computes, nice: 10, target: "check-vet"},
	{name: "unit", suites: []string{quick, code, all}, lane: computes, nice: 5, module: ".", packages: []string{".", "./api/...", "./cmd/...", "./config/...", "./controllers/...", "./docs/...", "./internal/..."}, flags: []string{"-timeout=20m"}},
	{name: "apiserver", suites: []string{code, all}, lane: computes, nice: 5, needs: []string{forAPI}, module: "test", packages: []string{"./apiserver", "./gitops"}, flags: []string{"-timeout=20m"}},
	{name: "scenarios", suites: []string{quick}, lane: computes, nice: 5, module: "test", packages: []string{"./sim", "./sim/sabotage"}, strict: true,
		flags: []string{"-count=1", "-run=^(TestScenariosConverge|TestDefectsOccurInTheSource)$", "-timeout=20m"}},
	{name: "process", suites: []string{quick, code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./process"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"}},
	{name: "checker", suites: []string{code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./checker"}, mounts: true, strict: true,
		flags: []string{"-count=1", "-timeout=15m"}},
	{name: "facts", suites: []string{code, all}, lane: processes, needs: []string{forProcess}, module: "test", packages: []string{"./facts"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"}},
	{name: "peers", suites: []string{code, all}, lane: processes, needs: []string{forProcess, forPeers}, module: "test", packages: []string{"./peers"}, mounts: true,
		flags: []string{"-count=1", "-timeout=15m"}},
	{name: "sim", suites: []string{code, all}, lane: computes, nice: 5, module: "test", packages: []string{"./sim", "./sim/sabotage"}, strict: true,
		flags: []string{"-count=1", "-timeout=40m", "-skip=^TestOracleFindsSabotage$"}},
	{name: "race", suites: []string{all}, lane: computes, nice: 10, module: ".", packages: raced, race: true, strict: true,
		// A test that measures memory.
		flags: []string{"-shuffle=on", "-timeout=30m", "-skip=^TestManifestOfAnySizeFitsIntoMemoryOfJob$"}},
	{name: "race-sim", suites: []string{all}, lane: computes, nice: 10, module: "test", packages: []string{"./sim"}, race: true, strict: true,
		flags: []string{"-count=1", "-timeout=30m", "-run=^TestInvariantsHoldForRandomSeeds$", "-seeds=3"}},
	{name: "sabotage", lane: computes, nice: 10, module: "test", packages: []string{"./sim/sabotage"},
		flags: []string{"-count=1", "-timeout=60m"}},
	{name: "tenants", suites: []string{code, all}, lane: computes, nice: 5, needs: []string{forAPI}, module: "bench", packages: []string{"./tenants"},
		flags: []string{"-count=1", "-timeout=30m"}},
	{name: "tools", suites: []string{code, all}, lane: computes, nice: 15, target: "check-tools"},
	{name: "lint", suites: []string{all}, lane: computes, nice: 15, target: "check-lint"},
	{name: "e2e", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "tier-e2e", strict: true},
	{name: "hostile", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forProcess, forCluster}, target: "tier-hostile", strict: true},
	{name: "host", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forProcess, forCluster, forAPI, forPeers}, target: "tier-host"},
	{name: "rights", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forCluster}, module: "test", packages: []string{"./rights"}, flags: []string{"-count=1"}, strict: true},
	{name: "scorecard", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "scorecard"},
	{name: "olmv1", suites: []string{onACluster, all}, lane: onCluster, needs: []string{forCluster}, target: "tier-olmv1"},
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
			if t.name == name || slices.Contains(t.suites, name) {
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
