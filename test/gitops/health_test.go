// Package gitops checks what tools that apply objects read of their health: kstatus, and with it Flux, and Argo CD. And it
// checks the chart for Helm.
package gitops

import (
	"fmt"
	"os"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/backup"
	"github.com/memcached-operator/memcached-operator/controllers/memcached"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/restore"
	"github.com/memcached-operator/memcached-operator/controllers/schedule"
	"github.com/memcached-operator/memcached-operator/controllers/transfer"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
	snapshotwire "github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// world is an API server in memory and the operator's controllers on it.
type world struct {
	*simtest.Env
	clock     *testclock.FakeClock
	jobs      *simtest.Jobs
	operators map[string]reconcile.Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{clock: testclock.NewFakeClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))}
	uids := 0
	server := simtest.NewServer(w.clock.Now, func() types.UID {
		uids++
		return types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", uids))
	})
	w.Env, w.jobs = simtest.NewEnv(t, server, simtest.InMemory), simtest.NewJobs(server, simtest.InMemory, w.clock.Now)
	recorder, cached := events.NewFakeRecorder(1000), simtest.Indexed(server)
	engine := transfer.Engine{Client: cached, APIReader: server, Progress: w.jobs, Recorder: recorder, Options: transfer.Options{Image: "operator"}, Clock: w.clock}
	w.operators = map[string]reconcile.Reconciler{
		"Memcached": &memcached.Reconciler{Client: cached, APIReader: server, AgentClient: w.Agents, Recorder: recorder, Clock: w.clock, DefaultImageUpdates: 1,
			Options: resources.Options{AgentImage: "operator", DefaultImage: "docker.io/library/memcached:1.6.45"}},
		"MemcachedBackup":          &backup.Reconciler{Engine: engine},
		"MemcachedRestore":         &restore.Reconciler{Engine: engine},
		"MemcachedScheduledBackup": &schedule.Reconciler{Client: cached, APIReader: server, Recorder: recorder, Clock: w.clock},
	}
	return w
}

// apply creates the object of that kind.
func (w *world) apply(kind, spec string) {
	w.Helper()
	w.Must(w.Admin.Create(w.Ctx, w.Object(kind, "cache", spec)))
}

// ran creates an object and runs it.
func (w *world) ran(kind, spec string) {
	w.Helper()
	w.apply(kind, spec)
	w.run(kind)
}

// run reconciles an object so often that it has no more to do, while its Job runs.
func (w *world) run(kind string) {
	w.Helper()
	for range 12 {
		_, err := w.operators[kind].Reconcile(w.Ctx, w.Request("cache"))
		w.Must(err)
		_, err = w.jobs.Tick()
		w.Must(err)
		w.clock.Step(time.Second)
	}
}

// ready runs a Memcached of one shard until it is ready.
func (w *world) ready() {
	w.Helper()
	w.ran("Memcached", "{}")
	w.Answer(w.RunPod("cache-0", "a", "10.0.0.1"), agentwire.Start{Result: agentwire.StartCold, At: w.clock.Now()}, "1.6.45")
	w.run("Memcached")
}

const (
	toClaim     = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}, deletionPolicy: Delete}"
	fromBackup  = "{memcachedRef: {name: cache}, backupRef: {name: cache}}"
	finalBackup = "backup: {final: {store: {persistentVolumeClaim: {claimName: snapshots}}}}"
	nightly     = "{schedule: 30 2 * * *, backupTemplate: {spec: {memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}}}"
)

var states = map[string]struct {
	kind  string
	given func(*world)
	flux  status.Status
	argo  string
}{
	"a Memcached that was just created": {"Memcached", func(w *world) { w.apply("Memcached", "{}") }, status.InProgressStatus, "Progressing"},
	"a Memcached whose shards start":    {"Memcached", func(w *world) { w.apply("Memcached", "{}"); w.run("Memcached") }, status.InProgressStatus, "Progressing"},
	"a Memcached that is ready":         {"Memcached", func(w *world) { w.ready() }, status.CurrentStatus, "Healthy"},
	"a Memcached whose spec has changed": {"Memcached", func(w *world) {
		w.ready()
		w.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Size = new(int32(2)) })
	}, status.InProgressStatus, "Progressing"},
	"a Memcached that is paused before its shards are ready": {"Memcached", func(w *world) {
		w.ran("Memcached", "{}")
		w.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Paused = true })
		w.run("Memcached")
	}, status.InProgressStatus, "Progressing"},
	"a Memcached whose version the operator rejects": {"Memcached", func(w *world) {
		w.ready()
		w.Change("cache", func(m *v1beta1.Memcached) { m.Spec.Version = "1.4.30" })
		w.run("Memcached")
	}, status.FailedStatus, "Degraded"},
	"a Memcached that is being deleted": {"Memcached", func(w *world) {
		w.ran("Memcached", "{deletionPolicy: Backup, "+finalBackup+"}")
		w.Must(w.Admin.Delete(w.Ctx, w.Get("cache")))
	}, status.TerminatingStatus, "Progressing"},

	"a backup that was just created":        {"MemcachedBackup", func(w *world) { w.apply("MemcachedBackup", toClaim) }, status.InProgressStatus, "Progressing"},
	"a backup that waits for its Memcached": {"MemcachedBackup", func(w *world) { w.ran("MemcachedBackup", toClaim) }, status.InProgressStatus, "Progressing"},
	"a backup that runs": {"MemcachedBackup", func(w *world) {
		w.ready()
		w.jobs.Hang = map[snapshotwire.Action]bool{snapshotwire.ActionSave: true}
		w.ran("MemcachedBackup", toClaim)
	}, status.InProgressStatus, "Progressing"},
	"a backup without its Secret": {"MemcachedBackup", func(w *world) {
		w.ready()
		w.jobs.Stuck = &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: "no secret"}
		w.ran("MemcachedBackup", toClaim)
	}, status.FailedStatus, "Degraded"},
	"a backup that is complete": {"MemcachedBackup", func(w *world) {
		w.ready()
		w.ran("MemcachedBackup", toClaim)
	}, status.CurrentStatus, "Healthy"},
	"a backup that failed": {"MemcachedBackup", func(w *world) {
		w.ready()
		w.jobs.Ends = map[snapshotwire.Action][]simtest.End{snapshotwire.ActionSave: {{Exit: snapshotwire.ExitFinal, Outcome: &snapshotwire.Outcome{Reason: v1beta1.ReasonStoreFull, Message: "full"}}}}
		w.ran("MemcachedBackup", toClaim)
	}, status.FailedStatus, "Degraded"},
	"a backup that is being deleted": {"MemcachedBackup", func(w *world) {
		w.ready()
		w.ran("MemcachedBackup", toClaim)
		b := &v1beta1.MemcachedBackup{}
		w.Read("cache", b)
		w.Must(w.Admin.Delete(w.Ctx, b))
	}, status.TerminatingStatus, "Progressing"},

	"a restore that was just created": {"MemcachedRestore", func(w *world) { w.apply("MemcachedRestore", fromBackup) }, status.InProgressStatus, "Progressing"},
	"a restore that waits for its backup": {"MemcachedRestore", func(w *world) {
		w.ready()
		w.ran("MemcachedRestore", fromBackup)
	}, status.InProgressStatus, "Progressing"},
	"a restore that is complete": {"MemcachedRestore", func(w *world) {
		w.ready()
		w.ran("MemcachedBackup", toClaim)
		w.ran("MemcachedRestore", fromBackup)
	}, status.CurrentStatus, "Healthy"},
	"a restore that failed": {"MemcachedRestore", func(w *world) {
		w.apply("MemcachedRestore", fromBackup)
		w.clock.Step(time.Hour)
		w.run("MemcachedRestore")
	}, status.FailedStatus, "Degraded"},

	"a schedule that was just created":  {"MemcachedScheduledBackup", func(w *world) { w.apply("MemcachedScheduledBackup", nightly) }, status.InProgressStatus, "Progressing"},
	"a schedule that waits for its run": {"MemcachedScheduledBackup", func(w *world) { w.ran("MemcachedScheduledBackup", nightly) }, status.CurrentStatus, "Healthy"},
	"a schedule that is suspended":      {"MemcachedScheduledBackup", func(w *world) { w.ran("MemcachedScheduledBackup", "{suspend: true, "+nightly[1:]) }, status.CurrentStatus, "Healthy"},
	"a schedule that is invalid": {"MemcachedScheduledBackup", func(w *world) {
		w.ran("MemcachedScheduledBackup", `{schedule: "99 99 * * *", backupTemplate: {spec: {memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}}}`)
	}, status.FailedStatus, "Degraded"},
}

func TestToolsReadTheHealthOfEachState(t *testing.T) {
	script := healthScript(t)
	for name, c := range states {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.given(w)
			o := simtest.NewObject(simtest.Kind(c.kind))
			w.Must(w.Admin.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: "cache"}, o))
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			w.Must(err)
			u := &unstructured.Unstructured{Object: fields}
			u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(c.kind))
			if got, err := status.Compute(u); err != nil || got.Status != c.flux {
				t.Errorf("kstatus reads %v, %v; want %s, of %v", got, err, c.flux, fields)
			}
			if got, message := argoHealth(t, script, u.Object); got != c.argo || message == "" {
				t.Errorf("Argo CD reads %s: %s; want %s, of %v", got, message, c.argo, fields)
			}
		})
	}
}

// healthScript returns the script that users add to the ConfigMap of Argo CD.
func healthScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../config/argocd/argocd-cm.yaml")
	must(t, err)
	var config corev1.ConfigMap
	var customizations map[string]map[string]string
	must(t, yaml.Unmarshal(text, &config))
	must(t, yaml.Unmarshal([]byte(config.Data["resource.customizations"]), &customizations))
	return customizations[v1beta1.GroupVersion.Group+"/*"]["health.lua"]
}

// argoHealth runs a script as Argo CD does: obj is the object, and the result has the health.
func argoHealth(t *testing.T, script string, o map[string]any) (health, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.Push(l.NewFunction(lua.OpenBase))
	l.Push(lua.LString(lua.BaseLibName))
	l.Call(1, 0)
	l.SetGlobal("obj", luaValue(l, o))
	must(t, l.DoString(script))
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v", l.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for name, field := range v {
			table.RawSetString(name, luaValue(l, field))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, item := range v {
			table.Append(luaValue(l, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
