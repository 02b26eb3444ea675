package sabotage

// defect is a fault of the planner that the simulation must find.
type defect struct {
	name string
	// file is the product's, from the root of the repository.
	file  string
	edits []edit
}

// edit replaces what occurs once in the file.
type edit struct{ old, new string }

const (
	planner    = "controllers/memcached/rollout/planner.go"
	gates      = "controllers/memcached/rollout/gates.go"
	change     = "controllers/memcached/shard/change.go"
	plan       = "controllers/memcached/plan/"
	conditions = "controllers/memcached/status/conditions.go"
)

var defects = []defect{
	{"no gate keeps a second shard from being updated", gates, []edit{
		{"\tshardInTransition,        // ", "\t// "},
		{"\tshardUnavailable,         // ", "\t// "},
	}},
	{"a shard is replaced unannounced", gates, []edit{{
		"s.ToTarget.Method == Replace && !s.ToTarget.ReplacementAnnounced",
		"s.ToTarget.Method > Replace && !s.ToTarget.ReplacementAnnounced",
	}}},
	{"a pod that recovered is replaced unannounced", planner, []edit{{
		"(s.ToTarget.Method != Replace || !s.ToTarget.ReplacementAnnounced)",
		"s.ToTarget.Method != Replace",
	}}},
	{"a shard that serves is rolled back while another one is unavailable", planner, []edit{{
		"blocked && s.Pod.State == Serving {",
		"blocked && s.Pod.State != Serving {",
	}}},
	{"a handover ends while another shard is unavailable", planner, []edit{{
		"if d, blocked := shardUnavailable(in, s); blocked {",
		"if d, blocked := shardUnavailable(in, s); blocked && in.Paused {",
	}}},
	{"a failed update goes on", planner, []edit{{
		"failed && s.Pod.Revision == s.Target && s.Failed",
		"failed && s.Pod.Revision != s.Target && s.Failed",
	}}},
	{"the other pod of a shard ends before it serves", planner, []edit{{
		"s.Next.State == Serving && !s.Pod.Terminating:",
		"s.Next.State != Broken && !s.Pod.Terminating:",
	}}},
	{"a pod is deleted when its handover starts", plan + "step.go", []edit{{
		"a.Patch = append(a.Patch, Annotate(s.Next, annotations.Receive, agentwire.Request{PodUID: string(s.Active.UID)}.String()))",
		"a.Delete = append(a.Delete, s.Active)",
	}}},
	{"one pod is wanted before the ReplicaSet controller knows that the former one has terminated", plan + "desired.go", []edit{{"s.Surges || awaitsCount(s)", "s.Surges"}}},
	{"a stop is not announced", planner, []edit{{
		"change.Method >= Recreate && s.Pod.State == Serving",
		"change.Method > Recreate && s.Pod.State == Serving",
	}}},
	{"any announced stop counts as acknowledged", change, []edit{{
		"o.announced(to, in.Now, agentwire.AnnouncementTimeout/2)",
		"agentwire.AnnouncementTimeout > 0",
	}}},
	{"a stop counts as acknowledged before the agent has read it", change, []edit{{
		"f.stopAcknowledged = r.agent.AnnouncedStop == o.Active.Annotations[annotations.Stop] && ",
		`f.stopAcknowledged = o.Active.Annotations[annotations.Stop] != "" && `,
	}}},
	{"a Memcached that adopts shards is filled as a new one", plan + "bootstrap.go", []edit{{"resources.Size(m) > 0 && isNew(obs):", "resources.Size(m) > 0:"}}},
	{"the list has a shard that copies its items", "controllers/memcached/resources/scaling.go", []edit{{"return Sizes{max(from, to), from, from}", "return Sizes{max(from, to), to, max(from, to)}"}}},
	{"a shard is deleted before the others have its items", "controllers/memcached/resources/scaling.go", []edit{{"		return Sizes{max(from, to), to, max(from, to)}", "		return Sizes{to, to, to}"}}},
	{"scaling doesn't wait for the shards", plan + "scaling.go", []edit{{"case !isReached, scaling.Step", "case isReached && r.targets < 0, scaling.Step"}}},
	{"an operator that has read an old Memcached acts by it", "controllers/memcached/controller.go", []edit{{
		"current, err := r.observer().specIsCurrent(ctx, m)", "current, err := true, error(nil)",
	}, {"err := apiserver.EnsureFresh(ctx, r.APIReader, m)", "err := error(nil)"}}},
	{"Available with one shard too few", conditions, []edit{{"case s.ReadyShards == size:", "case s.ReadyShards >= size-1:"}}},
}
