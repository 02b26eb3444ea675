package restore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// observed returns the observation of a restore of a Complete backup into two shards that has not begun.
func observed(edits ...func(*observation)) *observation {
	r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "again", UID: "u", CreationTimestamp: metav1.NewTime(now)}}
	r.Spec.MemcachedRef.Name, r.Spec.BackupRef = "cache", &v1beta1.BackupReference{Name: "nightly"}
	b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly"}}
	b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "snapshots"}
	b.Status.Phase, b.Status.Snapshot = v1beta1.TransferComplete, &v1beta1.SnapshotStatus{Path: "a/b", SnapshotTime: metav1.NewTime(now.Add(-2 * time.Hour)), Shards: 2, Items: 100}
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "cache", UID: "m"}, Spec: v1beta1.MemcachedSpec{Size: new(int32(2))}}
	m.Status.Selector = v1beta1.LabelInstance + "=cache"
	m.Status.Servers = []string{"cache-0.team.svc.cluster.local:11211", "cache-1.team.svc.cluster.local:11211"}
	obs := &observation{restore: r, backup: b, Observation: transfer.Observation{Object: r, Memcached: m, Job: transfer.JobObservation{Name: "restore-u", Now: now}, Now: now}}
	for ordinal := range m.Status.Servers {
		service := corev1.Service{ObjectMeta: resources.OwnedMeta(m)}
		service.Name = resources.ShardName(m.Name, ordinal)
		obs.Services = append(obs.Services, service)
	}
	for _, edit := range edits {
		edit(obs)
	}
	return obs
}

// running lets a restore be Running, without a Job.
func running(obs *observation) {
	s := &obs.restore.Status
	s.Phase, s.JobName, s.StartTime = v1beta1.TransferRunning, "restore-u", &metav1.Time{Time: now}
}

func fromPath(obs *observation) {
	obs.restore.Spec.BackupRef, obs.backup = nil, nil
	obs.restore.Spec.Snapshot = &v1beta1.SnapshotSource{Path: "c//d/", Store: v1beta1.SnapshotStore{S3: &v1beta1.S3Store{Bucket: "shared", CredentialsSecretName: "aws"}}}
}

// filledBy fills the Memcached with a restore first.
func filledBy(restore string, phase v1beta1.TransferPhase) func(*observation) {
	return func(obs *observation) {
		obs.Memcached.Status.Bootstrap = &v1beta1.BootstrapStatus{RestoreName: restore, Phase: phase}
	}
}

func replaces(gate v1beta1.Gate) func(*observation) {
	return func(obs *observation) {
		obs.Memcached.Status.Update = &v1beta1.UpdateStatus{Shard: "cache-1", Method: v1beta1.UpdateReplace, Gate: gate}
	}
}

// moves lets a change from one shard fewer be in a step.
func moves(step v1beta1.ScalingStep) func(*observation) {
	return func(obs *observation) {
		size := resources.Size(obs.Memcached)
		s := &v1beta1.ScalingStatus{From: size, To: size + 1, Step: step}
		if obs.Memcached.Status.Scaling = s; resources.SizesOf(obs.Memcached).Listed == int(s.To) {
			s.From, s.To = size-1, size
		}
	}
}

// another is a restore into the same Memcached that was created a minute earlier.
func another(phase v1beta1.TransferPhase, reason string, shards ...int32) func(*observation) {
	return func(obs *observation) {
		o := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "o", CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
		o.Spec.Shards, o.Status.Phase, o.Status.StartTime = shards, phase, &metav1.Time{Time: now}
		o.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: reason}}
		obs.others = append(obs.others, o)
	}
}

func TestRestoreStartsOnlyIfNothingBlocksIt(t *testing.T) {
	type kind int
	const (
		starts kind = iota
		fails
		waits
	)
	shards := func(shards ...int32) func(*observation) {
		return func(obs *observation) { obs.restore.Spec.Shards = shards }
	}
	resized := func(size int32) func(*observation) {
		return func(obs *observation) { obs.Memcached.Spec.Size = &size }
	}
	paused := func(obs *observation) { obs.Memcached.Spec.Paused = true }
	type edits = []func(*observation)
	for name, c := range map[string]struct {
		edits         edits
		want          kind
		reason, words string
	}{
		"nothing":                        {nil, starts, "", ""},
		"a snapshot by its path":         {edits{fromPath}, starts, "", ""},
		"there is no Memcached":          {edits{func(obs *observation) { obs.Memcached = nil }}, waits, v1beta1.ReasonMemcachedNotFound, "no Memcached cache"},
		"the Memcached is being deleted": {edits{func(obs *observation) { obs.Memcached.DeletionTimestamp = &metav1.Time{Time: now} }}, fails, v1beta1.ReasonMemcachedDeleting, "Restore into another one"},
		"the Memcached has no shard":     {edits{resized(0)}, fails, v1beta1.ReasonNoShards, "no shard to fill"},
		"it is paused with size 0":       {edits{paused, resized(0)}, starts, "", ""},
		"it is paused with another size, and its shards are those of the snapshot": {edits{paused, resized(1), shards(1)}, starts, "", ""},
		"it is paused with the size of the snapshot": {edits{paused, resized(3), func(obs *observation) {
			obs.backup.Status.Snapshot.Shards = 3
		}}, fails, v1beta1.ReasonSizeDiffers, "Memcached cache has 2"},
		"it is paused without a shard that it will have": {edits{paused, resized(3), shards(2)}, fails, v1beta1.ReasonShardNotFound, "has the shards 0 to 1"},
		"it lacks a shard":   {edits{shards(0, 2)}, fails, v1beta1.ReasonShardNotFound, "has the shards 0 to 1"},
		"it has the shard":   {edits{shards(1)}, starts, "", ""},
		"there is no backup": {edits{func(obs *observation) { obs.backup = nil }}, waits, v1beta1.ReasonBackupNotFound, "no MemcachedBackup nightly"},
		"the backup failed": {edits{func(obs *observation) {
			obs.backup.Status.Phase = v1beta1.TransferFailed
			obs.backup.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSucceeded, Reason: v1beta1.ReasonNoShards}}
		}}, fails, v1beta1.ReasonBackupNotComplete, "is Failed (NoShards)"},
		"the backup has no snapshot":      {edits{func(obs *observation) { obs.backup.Status.Snapshot = nil }}, fails, v1beta1.ReasonBackupNotComplete, "Set spec.snapshot"},
		"the backup is being deleted":     {edits{func(obs *observation) { obs.backup.DeletionTimestamp = &metav1.Time{Time: now} }}, fails, v1beta1.ReasonBackupDeleting, "Restore from another one"},
		"the backup runs":                 {edits{func(obs *observation) { obs.backup.Status.Phase = v1beta1.TransferRunning }}, waits, v1beta1.ReasonBackupNotComplete, "waiting until MemcachedBackup nightly"},
		"the snapshot is too old":         {edits{func(obs *observation) { obs.restore.Spec.MaxAgeSeconds = new(int32(7199)) }}, fails, v1beta1.ReasonSnapshotTooOld, "spec.maxAgeSeconds is 7199"},
		"the snapshot is just new enough": {edits{func(obs *observation) { obs.restore.Spec.MaxAgeSeconds = new(int32(7200)) }}, starts, "", ""},
		"the size differs":                {edits{resized(1)}, fails, v1beta1.ReasonSizeDiffers, "spec.access.hashing"},
		"the size differs, with hashing": {edits{func(obs *observation) {
			obs.backup.Status.Snapshot.Shards, obs.Memcached.Spec.Access.Hashing = 3, &v1beta1.Hashing{}
		}}, starts, "", ""},
		"the shards aren't reachable":         {edits{func(obs *observation) { obs.Memcached.Status.Servers = nil }}, waits, v1beta1.ReasonShardsStarting, "status.servers"},
		"another owner has a Service":         {edits{func(obs *observation) { obs.Services = obs.Services[:1] }}, waits, v1beta1.ReasonShardsStarting, "Service cache-1"},
		"one of another shard":                {edits{shards(0), func(obs *observation) { obs.Services = obs.Services[:1] }}, starts, "", ""},
		"another restore fills the Memcached": {edits{filledBy("first", v1beta1.TransferRunning)}, waits, v1beta1.ReasonBootstrapping, "MemcachedRestore first"},
		"another restore has filled it":       {edits{filledBy("first", v1beta1.TransferComplete)}, starts, "", ""},
		"it fills the Memcached":              {edits{filledBy("again", v1beta1.TransferRunning)}, starts, "", ""},
		"a shard is replaced":                 {edits{replaces("")}, waits, v1beta1.ReasonShardReplaced, "shard cache-1"},
		"a shard is in transition":            {edits{replaces(v1beta1.GateShardInTransition)}, waits, v1beta1.ReasonShardReplaced, "shard cache-1"},
		"an update waits for restores":        {edits{replaces(v1beta1.GateRestoreRunning)}, waits, v1beta1.ReasonShardReplaced, "shard cache-1"},
		"an update announces an empty start":  {edits{replaces(v1beta1.GateEmptyStartNotAnnounced)}, waits, v1beta1.ReasonShardReplaced, "shard cache-1"},
		"an update waits for its window":      {edits{replaces(v1beta1.GateOutsideMaintenanceWindow)}, starts, "", ""},
		"an update is paused":                 {edits{replaces(v1beta1.GatePaused)}, starts, "", ""},
		"an update failed":                    {edits{replaces(v1beta1.GateUpdateFailed)}, starts, "", ""},
		"a shard restarts in its pod":         {edits{replaces(""), func(obs *observation) { obs.Memcached.Status.Update.Method = v1beta1.UpdateRestart }}, starts, "", ""},
		"items are compared":                  {edits{moves(v1beta1.ScalingPublishing)}, waits, v1beta1.ReasonItemsMoving, "status.scaling"},
		"clients get the new list":            {edits{moves(v1beta1.ScalingWaiting)}, waits, v1beta1.ReasonItemsMoving, "status.scaling"},
		"moved items are deleted":             {edits{moves(v1beta1.ScalingClosing)}, waits, v1beta1.ReasonItemsMoving, "status.scaling"},
		"a lost shard waits for no client": {edits{moves(v1beta1.ScalingWaiting), func(obs *observation) {
			obs.restore.Annotations = map[string]string{annotations.Refills: "cache-0"}
		}}, starts, "", ""},
		"items are copied":                      {edits{moves(v1beta1.ScalingCopying)}, starts, "", ""},
		"items have moved":                      {edits{moves(v1beta1.ScalingFinishing)}, starts, "", ""},
		"another restore is running":            {edits{another(v1beta1.TransferRunning, "")}, waits, v1beta1.ReasonRestoreRunning, "MemcachedRestore other"},
		"another one into other shards":         {edits{another(v1beta1.TransferRunning, "", 0), shards(1)}, starts, "", ""},
		"another one into a common shard":       {edits{another(v1beta1.TransferRunning, "", 0, 1), shards(1)}, waits, v1beta1.ReasonRestoreRunning, "MemcachedRestore other"},
		"an older one waits for a restore":      {edits{another(v1beta1.TransferPending, v1beta1.ReasonRestoreRunning)}, waits, v1beta1.ReasonRestoreRunning, "MemcachedRestore other"},
		"an older one waits for something else": {edits{another(v1beta1.TransferPending, v1beta1.ReasonShardsStarting)}, starts, "", ""},
		"a newer one waits for a restore": {edits{another(v1beta1.TransferPending, v1beta1.ReasonRestoreRunning), func(obs *observation) {
			obs.others[0].CreationTimestamp = metav1.NewTime(now.Add(time.Second))
		}}, starts, "", ""},
		"one of the same age and a later name":  {edits{another(v1beta1.TransferPending, v1beta1.ReasonRestoreRunning), func(obs *observation) { obs.others[0].CreationTimestamp = metav1.NewTime(now) }}, starts, "", ""},
		"an older one waits, and it is Running": {edits{running, another(v1beta1.TransferPending, v1beta1.ReasonRestoreRunning)}, starts, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(c.edits...)
			got, b := starts, obs.Blocker()
			switch {
			case b == nil:
			case b.Transient:
				got = waits
			default:
				got = fails
			}
			if got != c.want || b != nil && (b.Reason != c.reason || !strings.Contains(b.Message, c.words)) {
				t.Errorf("%d: it is blocked by %+v", got, b)
			}
		})
	}
}

// The backup may be deleted before the restore has finished.
func TestStatusNamesSnapshotOnceRestoreStarts(t *testing.T) {
	if s := observed().Plan(nil).Status; s.Phase != v1beta1.TransferRunning || s.Snapshot == nil || s.Snapshot.Path != "a/b" {
		t.Errorf("the status is %+v", s)
	}
	obs := observed(running, func(obs *observation) { obs.restore.Status.Snapshot, obs.backup = obs.backup.Status.Snapshot, nil })
	if obs.path() != "a/b" || obs.Store() != (v1beta1.SnapshotStore{}) {
		t.Errorf("after its backup was deleted it reads %s of %+v", obs.path(), obs.Store())
	}
	if got := observed().Summary(); got != "Job restore-u will fill Memcached cache from directory a/b of PersistentVolumeClaim snapshots" {
		t.Errorf("the summary is %q", got)
	}
}

func TestStatusCountsItemsAlsoOfAFailedRestore(t *testing.T) {
	obs := observed()
	snapshot := &snapshotwire.Snapshot{TakenAt: now, Shards: 2, Items: 100}
	s, summary, failure := obs.Record(obs.LastStatus(), &snapshotwire.Outcome{Reason: v1beta1.ReasonSnapshotCorrupt, Restored: 25, Kept: 5, Expired: 4, Rejected: 1, Snapshot: snapshot})
	if s.Restored != 25 || s.Kept != 5 || s.Expired != 4 || s.Rejected != 1 || s.Snapshot.Path != "a/b" || s.Snapshot.Items != 100 {
		t.Errorf("the status is %+v", s)
	}
	if summary != "restored 25 items; 5 existed already, 4 had expired, memcached rejected 1" || failure != "" {
		t.Errorf("%q, %q", summary, failure)
	}
	if s, _, _ := obs.Record(transfer.Status{}, &snapshotwire.Outcome{}); s.Snapshot != nil {
		t.Errorf("the snapshot is %+v", s.Snapshot)
	}
}

func TestJobFillsShards(t *testing.T) {
	for name, c := range map[string]struct {
		edits []func(*observation)
		path  string
		load  snapshotwire.Load
		limit int
		cache transfer.CacheSize
	}{
		"from a backup": {nil, "a/b", snapshotwire.Load{}, 20000, transfer.CacheSize{}},
		"as the spec says": {[]func(*observation){fromPath, func(obs *observation) {
			s := &obs.restore.Spec
			s.Shards, s.ExistingItems, s.MaxAgeSeconds, s.MaxTTLSeconds = []int32{0, 1}, v1beta1.ExistingReplace, new(int32(21600)), new(int32(900))
			s.RateLimit = &v1beta1.RateLimit{ItemsPerSecond: new(int32(10))}
		}}, "c/d", snapshotwire.Load{Replace: true, Shards: []int{0, 1}, MaxAge: 6 * time.Hour, MaxTTL: 15 * time.Minute}, 10, transfer.CacheSize{}},
		"with the ring of clients": {[]func(*observation){func(obs *observation) {
			obs.Memcached.Spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashKetama, ServerNameTemplate: "{shard}.{namespace}:1"}
		}}, "a/b", snapshotwire.Load{Ring: "Ketama", RingServers: []string{"cache-0.team:1", "cache-1.team:1"}}, 20000, transfer.CacheSize{}},
		"with the default names": {[]func(*observation){func(obs *observation) {
			obs.Memcached.Spec.Access.Hashing = &v1beta1.Hashing{Algorithm: v1beta1.HashJump}
		}},
			"a/b", snapshotwire.Load{Ring: "Jump", RingServers: []string{"cache-0.team.svc.cluster.local:11211", "cache-1.team.svc.cluster.local:11211"}}, 20000, transfer.CacheSize{}},
		"from a larger cache": {[]func(*observation){func(obs *observation) { obs.backup.Status.Snapshot.Bytes = 64 << 30 }}, "a/b", snapshotwire.Load{}, 20000, transfer.CacheSize{Shards: 1, Memory: 64 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			obs := observed(c.edits...)
			want := obs.Options.Job(transfer.JobSpec{
				Prefix: transfer.Restore, Owner: obs.restore, Store: obs.Store(), Action: snapshotwire.ActionLoad, Basis: obs.Basis(), Memcached: obs.Memcached, Cache: c.cache,
				Task: snapshotwire.Task{
					Path: c.path, Memcached: snapshotwire.Memcached{Namespace: "team", Name: "cache", UID: "m"},
					Servers: obs.Memcached.Status.Servers, ItemsPerSecond: c.limit, BytesPerSecond: 32 << 20, Load: &c.load,
				},
			})
			if diff := cmp.Diff(want, obs.NewJob()); diff != "" {
				t.Errorf("the Job (-want +got):\n%s", diff)
			}
		})
	}
}

// A status contains Running before there is a Job. From then on the API server is read, and not the cache.
func TestObservationReadsFromAPIServerWhatDecidesAboutStart(t *testing.T) {
	server := func(suffix string) client.Client {
		o := observed()
		for _, object := range []client.Object{o.Memcached, o.backup} {
			object.SetLabels(map[string]string{"from": suffix})
		}
		objects := []client.Object{o.Memcached, o.backup}
		for name, edit := range map[string]func(*v1beta1.MemcachedRestore){
			"other-" + suffix:    func(*v1beta1.MemcachedRestore) {},
			"complete-" + suffix: func(r *v1beta1.MemcachedRestore) { r.Status.Phase = v1beta1.TransferComplete },
			"into-another-cache": func(r *v1beta1.MemcachedRestore) { r.Spec.MemcachedRef.Name = "another" },
		} {
			r := o.restore.DeepCopy()
			r.Name, r.UID = name, "another"
			edit(r)
			objects = append(objects, r)
		}
		return simtest.Indexed(fake.NewClientBuilder().WithScheme(simtest.Scheme()).WithObjects(append(objects, o.restore)...).Build())
	}
	r := transfer.Observer{Cache: server("cache"), API: server("server")}
	for name, c := range map[string]struct {
		edits  []func(*observation)
		from   string // of the backup
		others []string
	}{
		"it has not begun":      {nil, "cache", []string{"other-cache"}},
		"it is Running, no Job": {[]func(*observation){running}, "server", []string{"other-server"}},
		"it has a Job":          {[]func(*observation){running, func(obs *observation) { obs.restore.Status.JobUID = "j" }}, "cache", nil},
		"it has finished": {[]func(*observation){running, func(obs *observation) {
			obs.restore.Status.JobUID, obs.restore.Status.Phase = "j", v1beta1.TransferComplete
		}}, "", nil},
		"a snapshot, and no backup": {[]func(*observation){fromPath}, "", []string{"other-cache"}},
	} {
		t.Run(name, func(t *testing.T) {
			common := observed(c.edits...)
			obs, err := observe(t.Context(), r, common.Observation)
			if err != nil {
				t.Fatal(err)
			}
			from := ""
			if obs.backup != nil {
				from = obs.backup.Labels["from"]
			}
			var others []string
			for _, o := range obs.others {
				others = append(others, o.Name)
			}
			if from != c.from || !slices.Equal(others, c.others) {
				t.Errorf("the backup is from the %s, and the other restores are %v", from, others)
			}
			if isRead := obs.Memcached.Labels["from"] == "server"; isRead != (c.from == "server") {
				t.Errorf("the Memcached is read from the API server: %t", isRead)
			}
		})
	}
	none := fake.NewClientBuilder().WithScheme(simtest.Scheme()).Build()
	r.API = none
	if obs, err := observe(t.Context(), r, observed(running).Observation); err != nil || obs.Memcached != nil || obs.backup != nil {
		t.Errorf("%v: after both were deleted: %v, %v", err, obs.Memcached, obs.backup)
	}
}
