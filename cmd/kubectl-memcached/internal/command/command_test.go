package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// world is a cluster, and what the plugin prints.
type world struct {
	t    *testing.T
	api  *simtest.Server
	pods fakePods
	// reject returns the error of a request.
	reject  func(verb string, o any) error
	looks   int
	passes  time.Duration // in each pause
	created int
	pause   func(look int) bool
	in      string
	// progress is what a terminal shows beside the output.
	out, err, progress bytes.Buffer
	// interrupt interrupts the verb that runs.
	interrupt func()
}

type fakePods struct {
	answer wire.Status
	err    error
	asked  *int
	// commands that the agents ran.
	commands *[]string
	// sample returns what an agent prints.
	sample func(pod string) (string, error)
	// metrics are those of a pod when they are read once more.
	metrics func(namespace, pod string) (string, error)
	// logs are those of all pods.
	logs string
	// network has memcached of the pods, by their names and ports.
	network *fake.Network
}

func (f fakePods) Dial(ctx context.Context, _, pod string, port int) (net.Conn, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.network.DialContext(ctx, "tcp", net.JoinHostPort(pod, strconv.Itoa(port)))
}

func (f fakePods) Agent(_ context.Context, _, pod string, out io.Writer, args ...string) error {
	if f.sample != nil && args[0] == "sample" { // of several pods at the same time
		keys, err := f.sample(pod)
		fmt.Fprint(out, keys)
		return err
	}
	*f.commands = append(*f.commands, pod+": "+strings.Join(args, " "))
	fmt.Fprintf(out, "the answer of %s\n", pod)
	return f.err
}

func (f fakePods) Logs(context.Context, string, string, string, bool) ([]byte, error) {
	return []byte(f.logs), f.err
}

func (f fakePods) Metrics(_ context.Context, namespace, pod string) (string, error) {
	if f.metrics == nil {
		return "", f.err
	}
	return f.metrics(namespace, pod)
}

func (f fakePods) AgentStatus(context.Context, string, string) (wire.Status, error) {
	*f.asked++
	return f.answer, f.err
}

// guarded is a client whose requests can be rejected.
type guarded struct {
	client.Client
	w *world
}

func (g guarded) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := g.w.reject("get", o); err != nil {
		return err
	}
	return g.Client.Get(ctx, key, o, options...)
}

func (g guarded) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := cmp.Or(ctx.Err(), g.w.reject("list", list)); err != nil {
		return err
	}
	return g.Client.List(ctx, list, options...)
}

// Create creates an object under its own name, or one that begins as it says, which the server in memory can't.
func (g guarded) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if err := g.w.reject("create", o); err != nil {
		return err
	}
	if o.GetName() == "" {
		g.w.created++
		o.SetName(o.GetGenerateName() + strconv.Itoa(g.w.created))
	}
	return g.Client.Create(ctx, o, options...)
}

func (g guarded) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	if err := g.w.reject("patch", o); err != nil {
		return err
	}
	return g.Client.Patch(ctx, o, patch, options...)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {namespace: default}}]\nclusters: [{name: the shop, cluster: {server: https://localhost}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	n := 0
	w := &world{
		t: t, reject: func(string, any) error { return nil }, pause: func(int) bool { return false }, pods: fakePods{asked: new(int), commands: new([]string), network: &fake.Network{}},
		api: simtest.NewServer(func() time.Time { return now }, func() types.UID { n++; return types.UID(fmt.Sprint(n)) }),
	}
	return w
}

// create creates a Memcached that is ready, with two shards.
func (w *world) create(name string) *v1beta1.Memcached {
	w.t.Helper()
	m := &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	if err := w.api.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	m.Status = v1beta1.MemcachedStatus{
		ObservedGeneration: m.Generation, Phase: v1beta1.PhaseRunning, Size: 2, ReadyShards: 2, UpdatedShards: 2,
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonAllShardsReady, Message: "2 of 2 shards are ready", LastTransitionTime: metav1.NewTime(now)}},
		Shards:     []v1beta1.ShardStatus{{Name: name + "-0", PodName: name + "-0-a", Ready: true}, {Name: name + "-1", PodName: name + "-1-b", Ready: true}},
	}
	w.report(m)
	return m
}

func (w *world) report(m *v1beta1.Memcached) {
	w.t.Helper()
	if err := w.api.SubResource("status").Update(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
}

// run runs the plugin and returns its exit code.
func (w *world) run(args ...string) int {
	w.t.Helper()
	w.out.Reset()
	w.err.Reset()
	w.progress.Reset()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	w.interrupt = cancel
	p := &plugin{progress: &w.progress, flags: genericclioptions.NewConfigFlags(true), streams: genericiooptions.IOStreams{In: strings.NewReader(w.in), Out: &w.out, ErrOut: &w.err}}
	p.connect = func() (*cluster.Cluster, error) {
		return &cluster.Cluster{Client: guarded{w.api, w}, Pods: w.pods, Now: func() time.Time { return now.Add(time.Duration(w.looks) * w.passes) }}, nil
	}
	p.pause = func(context.Context, time.Duration) bool {
		w.looks++
		return w.pause(w.looks)
	}
	return p.run(ctx, "1.1.0", args)
}

// want checks an exit code and what was printed.
func (w *world) want(code, wantCode int, out, err string) {
	w.t.Helper()
	if code != wantCode || !strings.Contains(w.out.String(), out) || !strings.Contains(w.err.String(), err) || err == "" && w.err.Len() > 0 {
		w.t.Errorf("got exit code %d and\n%s\n%s\nwant %d, %q, %q", code, w.out.String(), w.err.String(), wantCode, out, err)
	}
}

// cannot is how an API server rejects a request of a user without a permission.
func cannot(verb, group, resource, name string) error {
	message := fmt.Sprintf(`User "bob" cannot %s resource %q in API group %q in the namespace "default"`, verb, resource, group)
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: resource}, name, errors.New(message))
}

func TestStatusExitCodeIsTheState(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.want(w.run("status", "cache"), 0, "default/cache is Running: 2 of 2 shards are ready", "")
	m.Status.Conditions[0].Status, m.Status.Phase = metav1.ConditionFalse, v1beta1.PhaseProgressing
	w.report(m)
	w.want(w.run("status", "cache"), exitNotReady, "default/cache is Progressing", "")
	m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "UpdateFailed", LastTransitionTime: metav1.NewTime(now)})
	w.report(m)
	w.want(w.run("status", "cache"), exitNeedsIntervention, "default/cache is", "")
}

func TestWhyNamesTheGateAndWhatToDo(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.want(w.run("why", "cache"), 0, "Next: Unknown", "")
	m.Status.Conditions[0].Status = metav1.ConditionFalse
	m.Status.Update = &v1beta1.UpdateStatus{Revision: "r", Shard: "cache-1", Method: v1beta1.UpdateReplace, Gate: v1beta1.GateOutsideMaintenanceWindow, LastTransitionTime: metav1.NewTime(now), Message: "waiting"}
	w.report(m)
	w.want(w.run("why", "cache"), exitNotReady, "Next: Updating shard cache-1 (Replace), when the gate OutsideMaintenanceWindow doesn't block it any more: waiting\n"+
		"Do: Wait for the next window, or remove the windows to update now.\n", "")
	var read struct {
		Gates []struct{ Name, Blocks string }
	}
	if w.run("why", "cache", "-o", "json"); json.Unmarshal(w.out.Bytes(), &read) != nil || len(read.Gates) != len(v1beta1.Gates) {
		t.Fatalf("%s", w.out.String())
	}
	blocking := slices.Index(v1beta1.Gates, v1beta1.GateOutsideMaintenanceWindow)
	for i, g := range read.Gates {
		want := []string{"No", "Yes", "Unknown"}[cmp.Compare(i, blocking)+1]
		if g.Blocks != want || g.Name != string(v1beta1.Gates[i]) {
			t.Errorf("gate %d: %+v, want %s", i, g, want)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		reject error
		args   []string
		code   int
		says   string
	}{
		"a missing permission": {cannot("get", v1beta1.GroupVersion.Group, "memcacheds", "cache"), []string{"status", "cache"}, exitDenied,
			`Error: bob lacks the permission to get memcacheds.cache.memcached-operator.io in namespace default. Ask an administrator for it; the ClusterRole "view" has it: ` +
				`kubectl -n default create rolebinding memcached-view --clusterrole=view --user="bob"`},
		"a quota or a webhook":   {apierrors.NewForbidden(schema.GroupResource{Resource: "memcacheds"}, "cache", errors.New("exceeded quota")), []string{"status", "cache"}, exitFailed, "exceeded quota"},
		"no such Memcached":      {nil, []string{"status", "other"}, exitFailed, `"kubectl memcached status -A" lists all Memcacheds`},
		"a pod that was deleted": {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "cache-0-a"), []string{"status", "cache"}, exitFailed, "not found: it was deleted a moment ago; try again\n"},
		"no operator": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Group: v1beta1.GroupVersion.Group, Resource: "memcacheds"}, "cache", "404 page not found", 0, true),
			[]string{"status", "cache"}, exitFailed, "install it"},
		"no answer":                {context.DeadlineExceeded, []string{"status", "cache"}, exitFailed, "raise --request-timeout"},
		"no API server":            {&url.Error{Op: "Get", URL: "https://localhost", Err: errors.New("connection refused")}, []string{"status", "cache"}, exitFailed, "connection refused: check the network, and the cluster"},
		"an expired login":         {apierrors.NewUnauthorized("Unauthorized"), []string{"status", "cache"}, exitFailed, "log in to the cluster again"},
		"an unknown verb":          {nil, []string{"stats"}, exitUsage, `unknown command "stats"`},
		"an unknown flag":          {nil, []string{"status", "--what"}, exitUsage, "unknown flag"},
		"too many arguments":       {nil, []string{"status", "a", "b"}, exitUsage, "accepts at most 1 arg"},
		"an unknown format":        {nil, []string{"status", "cache", "-o", "xml"}, exitUsage, "use json or yaml"},
		"a name in all namespaces": {nil, []string{"status", "cache", "-A"}, exitUsage, "exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("cache")
			w.reject = func(string, any) error { return c.reject }
			w.want(w.run(c.args...), c.code, "", c.says)
		})
	}
}

// A user can choose the image of a shard, and so what a message quotes of it.
func TestMessagesDoNotControlTheTerminal(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	m.Status.Conditions[0].Message = "memcached says \x1b[2J\r"
	w.report(m)
	for _, args := range []string{"status", "status cache", "why cache"} {
		if w.want(w.run(strings.Fields(args)...), 0, `memcached says ^[[2J\r`, ""); strings.ContainsAny(w.out.String(), "\x1b\r") {
			t.Errorf("%s prints %q", args, w.out.String())
		}
	}
	m.Status.Shards[0].PodName = "\x1b[2J"
	w.report(m)
	w.want(w.run("clients", "cache", "0"), 0, "the answer of ^[[2J\n", "")
	w.reject = func(string, any) error { return errors.New("\x1b[2J") }
	w.want(w.run("status", "cache"), exitFailed, "", "reading Memcached cache: ^[[2J")
}

func TestRolesAreTheLeast(t *testing.T) {
	for r, want := range map[right]string{
		{"bob", "list", "memcachedbackups", "g", "ns"}:                   `bob lacks the permission to list memcachedbackups.g in namespace ns. Ask an administrator for it; the ClusterRole "view" has it: kubectl -n ns create rolebinding memcached-view --clusterrole=view --user="bob"`,
		{"system:serviceaccount:ci:bot", "create", "pods/exec", "", "n"}: `system:serviceaccount:ci:bot lacks the permission to create pods/exec in namespace n. Ask an administrator for it; the ClusterRole "edit" has it: kubectl -n n create rolebinding memcached-edit --clusterrole=edit --serviceaccount=ci:bot`,
		{"bob", "list", "memcacheds", "g", ""}:                           `bob lacks the permission to list memcacheds.g in all namespaces. Ask an administrator for it; the ClusterRole "view" has it: kubectl create clusterrolebinding memcached-view --clusterrole=view --user="bob"`,
		{"bob", "get", "secrets", "", "n"}:                               `bob lacks the permission to get secrets in namespace n. Ask an administrator for it; the ClusterRole "edit" has it: kubectl -n n create rolebinding memcached-edit --clusterrole=edit --user="bob"`,
		{"bob", "get", "pods/log", "", "n"}:                              `bob lacks the permission to get pods/log in namespace n. Ask an administrator for it; the ClusterRole "view" has it: kubectl -n n create rolebinding memcached-view --clusterrole=view --user="bob"`,
		{"bob", "get", "pods/portforward", "", "n"}:                      `bob lacks the permission to get pods/portforward in namespace n. Ask an administrator for it; the ClusterRole "edit" has it: kubectl -n n create rolebinding memcached-edit --clusterrole=edit --user="bob"`,
	} {
		if got := r.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// What is optional is omitted, and the user learns why.
func TestStatusShowsWhatTheUserMayRead(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.pods.answer = wire.Status{Items: 7}
	w.want(w.run("status", "cache"), 0, "  7  ", "")
	if *w.pods.asked != 2 || strings.Contains(w.out.String(), "Not shown") {
		t.Errorf("%d agents were queried\n%s", *w.pods.asked, w.out.String())
	}
	*w.pods.asked = 0
	w.pods.err = cannot("create", "", "pods/portforward", "cache-0-a")
	w.reject = func(_ string, o any) error {
		if _, isBackups := o.(*v1beta1.MemcachedBackupList); isBackups {
			return cannot("list", v1beta1.GroupVersion.Group, "memcachedbackups", "")
		}
		return nil
	}
	code := w.run("status", "cache")
	w.want(code, 0, "Not shown  the last backup: bob lacks the permission to list memcachedbackups.cache.memcached-operator.io in namespace default.", "")
	w.want(code, 0, "Not shown  items, memory and hits: bob lacks the permission to create pods/portforward in namespace default.", "")
	if *w.pods.asked != 1 {
		t.Errorf("%d agents were queried, although the user may query none", *w.pods.asked)
	}
}

func TestSlowVerbsShowTheirProgress(t *testing.T) {
	w := newWorld(t)
	w.createBusy("default", "cache", 128)
	w.pods.err = context.DeadlineExceeded
	for verb, want := range map[string]string{"status": "\rQueried 0 of 128 pods\r", "size": "\rQueried 127 of 128 pods\r\x1b[K", "clients": "Querying cache-0\nQuerying cache-1\n"} {
		if w.run(verb, "cache"); !strings.Contains(w.progress.String(), want) {
			t.Errorf("the progress of %s is %q", verb, w.progress.String())
		}
	}
	w.pods.err = cannot("create", "", "pods/portforward", "cache-0-x")
	if w.run("status", "cache"); w.progress.String() != "\rQueried 0 of 128 pods\rQueried 1 of 128 pods\r\x1b[K" {
		t.Errorf("the progress of what is denied is %q", w.progress.String())
	}
}

func TestStatusShowsTheLastBackupOfTheMemcached(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	for name, of := range map[string]string{"own": "cache", "foreign": "other"} {
		b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		b.Spec.MemcachedRef.Name = of
		b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: "c"}
		if err := w.api.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	w.want(w.run("status", "cache"), 0, "Last backup  own is not started", "")
}

func TestStatusAsJSON(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.want(w.run("status", "cache", "-o", "json"), 0, `"name": "cache-1"`, "")
	var read struct{ State, Sentence string }
	if err := json.Unmarshal(w.out.Bytes(), &read); err != nil || read.State != "Ready" || read.Sentence != "Running: 2 of 2 shards are ready" {
		t.Errorf("%v: %+v", err, read)
	}
	w.want(w.run("status", "-o", "yaml"), 0, "- name: cache\n", "")
}

func TestWatchShowsChangesAndSurvivesErrors(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache")
	w.pause = func(look int) bool {
		switch look {
		case 2:
			w.reject = func(string, any) error { return context.DeadlineExceeded }
		case 3:
			w.reject = func(string, any) error { return nil }
		case 4:
			m.Status.Phase = v1beta1.PhasePaused
			w.report(m)
		}
		return look < 5
	}
	code := w.run("status", "cache", "-w")
	w.want(code, 0, "default/cache is Paused", "raise --request-timeout")
	if n := strings.Count(w.out.String(), "default/cache is"); n != 3 {
		t.Errorf("%d screens of two statuses and an error between equal ones:\n%s", n, w.out.String())
	}
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	w.create("cache")
	w.create("sessions")
	for args, want := range map[string]string{
		"status": "cache\nsessions\n", "retry --dry-run": "cache\nsessions\n", "move cache": "0\n1\n", "get cache key --shard": "0\n1\n", "get --shard": "", "version": "",
	} {
		code := w.run(append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		if code != 0 || !strings.HasPrefix(w.out.String(), want+":4\n") || strings.Count(w.err.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, and\n%s%s", args, code, w.out.String(), w.err.String())
		}
	}
}

func TestDurationsAreBounded(t *testing.T) {
	checked := 0
	for _, cmd := range (&plugin{flags: genericclioptions.NewConfigFlags(true)}).root("").Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			checked++
			if err := f.Value.Set("-1s"); err == nil {
				t.Errorf("%s takes --%s=-1s", cmd.Name(), f.Name)
			}
			if err := f.Value.Set("2562047h"); err == nil && f.Name != "timeout" && f.Name != "ttl" { // whose verb checks it
				t.Errorf("%s takes --%s=2562047h", cmd.Name(), f.Name)
			}
		})
	}
	if checked < 6 {
		t.Errorf("only %d flags were found", checked)
	}
}
