package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

const operatorNamespace = "memcached-operator-system"

// store is an API server with objects of prometheus-operator's kinds, while it has their CRDs.
type store struct {
	discovery.DiscoveryInterface
	lock sync.Mutex
	crds bool
	// discovery is locked while the CRDs are read.
	discovery sync.Mutex
	// late are the CRDs whose watches begin once the channel is closed.
	late     map[string]chan struct{}
	objects  map[string]*unstructured.Unstructured
	watchers map[string][]*watch.RaceFreeFakeWatcher
	// writes were tried, and fail so.
	writes []string
	fails  error
	uids   int
}

func newStore() *store {
	return &store{objects: map[string]*unstructured.Unstructured{}, watchers: map[string][]*watch.RaceFreeFakeWatcher{}}
}

func notFound(name string) error { return apierrors.NewNotFound(schema.GroupResource{}, name) }

// ServerResourcesForGroupVersion implements discovery.DiscoveryInterface.
func (s *store) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	s.discovery.Lock()
	defer s.discovery.Unlock()
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.crds || version != prometheusGroup.String() {
		return nil, notFound(version)
	}
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "podmonitors"}, {Name: "prometheusrules"}, {Name: "servicemonitors"}}}, nil
}

// part is what a store has of a kind in a namespace; none is all.
type part struct {
	dynamic.NamespaceableResourceInterface
	*store
	resource, namespace string
}

func (s *store) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return part{store: s, resource: gvr.Resource}
}

func (p part) Namespace(name string) dynamic.ResourceInterface {
	p.namespace = name
	return p
}

func (p part) key(name string) string { return p.resource + " " + p.namespace + "/" + name }

func (p part) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if o, ok := p.objects[p.key(name)]; ok {
		return o.DeepCopy(), nil
	}
	return nil, notFound(name)
}

func (p part) Apply(_ context.Context, name string, o *unstructured.Unstructured, options metav1.ApplyOptions, _ ...string) (*unstructured.Unstructured, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.writes = append(p.writes, "apply "+p.key(name))
	have := p.objects[p.key(name)]
	switch {
	case p.fails != nil:
		return nil, p.fails
	case !p.crds && p.resource != "configmaps":
		return nil, notFound(name)
	case !options.Force || options.FieldManager != v1beta1.ManagedByValue, have != nil && have.GetUID() != o.GetUID(), have == nil && o.GetResourceVersion() == "":
		return nil, fmt.Errorf("it would apply to another object, with %+v", options)
	}
	o = o.DeepCopy()
	if have == nil {
		p.uids++
		o.SetUID(types.UID(fmt.Sprint(p.uids)))
	}
	p.set(p.key(name), o)
	return o, nil
}

func (p part) Delete(_ context.Context, name string, options metav1.DeleteOptions, _ ...string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.writes = append(p.writes, "delete "+p.key(name))
	if have := p.objects[p.key(name)]; have == nil || options.Preconditions == nil || *options.Preconditions.UID != have.GetUID() {
		return notFound(name)
	}
	p.set(p.key(name), nil)
	return nil
}

// set changes an object, and notifies its watchers; nil deletes it.
func (s *store) set(key string, o *unstructured.Unstructured) {
	send, changed := (*watch.RaceFreeFakeWatcher).Modify, o
	if s.objects[key] == nil {
		send = (*watch.RaceFreeFakeWatcher).Add
	}
	if s.objects[key] = o; o == nil {
		send = (*watch.RaceFreeFakeWatcher).Delete
		changed = &unstructured.Unstructured{}
		_, name, _ := strings.Cut(key, " ")
		namespace, name, _ := strings.Cut(name, "/")
		changed.SetNamespace(namespace)
		changed.SetName(name)
		delete(s.objects, key)
	}
	resource, _, _ := strings.Cut(key, " ")
	for _, w := range s.watchers[resource] {
		send(w, identityOf(changed))
	}
}

func identityOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Labels: o.GetLabels(), ResourceVersion: "1"}}
}

// edit changes an object as a user would; nil deletes it.
func (s *store) edit(k kind, namespace, name string, change func(*unstructured.Unstructured)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	key := k.resource.Resource + " " + namespace + "/" + name
	if change == nil {
		s.set(key, nil)
		return
	}
	o := s.objects[key].DeepCopy()
	change(o)
	s.set(key, o)
}

// install creates the CRDs, and uninstall deletes them with their objects.
func (s *store) install() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.crds = true
}

func (s *store) uninstall() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.crds = false
	for key := range s.objects {
		if !strings.HasPrefix(key, "configmaps ") {
			delete(s.objects, key)
		}
	}
}

// watches is a store whose objects are watched.
type watches struct {
	metadata.Getter
	*store
	resource string
}

func (w watches) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return watches{store: w.store, resource: gvr.Resource}
}

func (w watches) Namespace(string) metadata.ResourceInterface { return w }

func (w watches) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	if begins, ok := w.late[w.resource]; ok {
		<-begins
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	watcher := watch.NewRaceFreeFake()
	for key, o := range w.objects {
		if strings.HasPrefix(key, w.resource+" ") && o.GetLabels()[v1beta1.LabelManagedBy] == v1beta1.ManagedByValue {
			watcher.Add(identityOf(o))
		}
	}
	watcher.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	w.watchers[w.resource] = append(w.watchers[w.resource], watcher)
	return watcher, nil
}

// world is the controller on a store, in a synctest bubble.
type world struct {
	*testing.T
	*store
	memcacheds client.Client
	reconciler *Reconciler
	// reconciling is locked while the controller reads its options.
	reconciling sync.Mutex
}

func newWorld(t *testing.T, s *store, o Options, memcacheds ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o.OperatorNamespace, o.DashboardNamespace = operatorNamespace, operatorNamespace
	w := &world{T: t, store: s, memcacheds: fake.NewClientBuilder().WithScheme(scheme).WithObjects(memcacheds...).Build()}
	w.reconciler = &Reconciler{Client: w.memcacheds, Objects: s, Options: o}
	w.reconciler.kinds = newKinds(s, watches{store: s}, nil, recheck, w.reconciler.namespaces)
	return w
}

// start runs the controller until the test stops.
func (w *world) start() {
	go func() {
		if err := w.reconciler.kinds.run(w.Context()); err != nil {
			w.Error(err)
		}
	}()
	go func() {
		for {
			select {
			case e := <-w.reconciler.kinds.changes:
				w.reconcile(e.Object.GetNamespace())
			case <-w.Context().Done():
				return
			}
		}
	}()
	synctest.Wait()
}

func (w *world) reconcile(namespace string) {
	w.reconciling.Lock()
	defer w.reconciling.Unlock()
	if _, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace}}); err != nil {
		w.Error(err)
	}
}

// pass has time pass, and returns what the controller writes in it.
func (w *world) pass(d time.Duration) (writes []string) {
	time.Sleep(d) //nolint:forbidigo // the fake time of a bubble
	synctest.Wait()
	w.lock.Lock()
	defer w.lock.Unlock()
	writes, w.writes = w.writes, nil
	slices.Sort(writes)
	return writes
}

func (w *world) wantWrites(got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("it writes %q, want %q", got, want)
	}
}

func memcached(namespace, name string, monitoring v1beta1.MonitoringSpec) *v1beta1.Memcached {
	return &v1beta1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1beta1.MemcachedSpec{Monitoring: monitoring}}
}

var (
	ofTeam     = []string{"apply podmonitors team/memcached-shards", "apply prometheusrules team/memcached-shards"}
	ofOperator = []string{"apply configmaps memcached-operator-system/memcached-operator-dashboard-fleet", "apply configmaps memcached-operator-system/memcached-operator-dashboard-memcached"}
)

func TestMonitoringObjectsFollowMemcachedsAndCRDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newStore(), Options{}, memcached("team", "a", v1beta1.MonitoringSpec{}))
		w.start()
		w.reconcile("team")
		w.wantWrites(w.pass(time.Hour)) // without the CRDs

		w.install()
		w.wantWrites(w.pass(recheck), slices.Concat(ofOperator, ofTeam[:1], []string{"apply prometheusrules memcached-operator-system/memcached-operator"}, ofTeam[1:],
			[]string{"apply servicemonitors memcached-operator-system/memcached-operator"})...)
		w.wantWrites(w.pass(time.Hour))

		w.edit(prometheusRule, "team", shardsName, nil)
		w.wantWrites(w.pass(0), ofTeam[1])
		w.edit(podMonitor, "team", shardsName, func(o *unstructured.Unstructured) {
			if err := unstructured.SetNestedStringMap(o.Object, map[string]string{"app": "none"}, "spec", "selector", "matchLabels"); err != nil {
				t.Fatal(err)
			}
		})
		w.wantWrites(w.pass(0), ofTeam[0])
		w.edit(podMonitor, "team", shardsName, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"theirs": "stays"}) })
		w.wantWrites(w.pass(0))
		w.edit(serviceMonitor, operatorNamespace, operatorName, nil) // which isn't watched, but compared
		w.wantWrites(w.pass(recheck), "apply servicemonitors memcached-operator-system/memcached-operator")

		// A write that fails since its CRD was deleted isn't repeated.
		w.discovery.Lock() // it notices the deletion after both writes
		w.uninstall()
		w.reconcile("team")
		w.discovery.Unlock()
		w.wantWrites(w.pass(0), ofTeam...)
		w.reconcile("team")
		w.wantWrites(w.pass(time.Hour))
		w.install()
		if got := w.pass(recheck); !slices.Contains(got, ofTeam[0]) || !slices.Contains(got, ofTeam[1]) {
			t.Errorf("once the CRDs exist again, it writes %q", got)
		}

		if err := w.memcacheds.Delete(t.Context(), memcached("team", "a", v1beta1.MonitoringSpec{})); err != nil {
			t.Fatal(err)
		}
		w.reconcile("team")
		w.wantWrites(w.pass(time.Hour), "delete podmonitors team/memcached-shards", "delete prometheusrules team/memcached-shards")
	})
}

// The API server can take seconds until a watch of a new CRD begins.
func TestMonitoringObjectDeletedBeforeItsWatchBeginsIsRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install()
		begin := make(chan struct{})
		s.late = map[string]chan struct{}{prometheusRule.resource.Resource: begin}
		w := newWorld(t, s, Options{}, memcached("team", "a", v1beta1.MonitoringSpec{}))
		w.start()
		if got := w.pass(0); !slices.Contains(got, ofTeam[1]) {
			t.Errorf("before the watch begins, it writes %q", got)
		}
		w.edit(prometheusRule, "team", shardsName, nil)
		w.wantWrites(w.pass(time.Hour))
		close(begin)
		w.wantWrites(w.pass(0), ofTeam[1])
	})
}

// A CRD can be listed before it is served.
func TestMonitoringObjectOfAKindThatIsNotServedYetIsRetried(t *testing.T) {
	s := newStore()
	w := newWorld(t, s, Options{}, memcached("team", "a", v1beta1.MonitoringSpec{}))
	w.reconciler.kinds.found[podMonitor] = func() {}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team"}}
	if result, err := w.reconciler.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 || len(w.reconciler.kinds.missing) == 0 {
		t.Errorf("%+v, %v, and it asks %d times which CRDs exist", result, err, len(w.reconciler.kinds.missing))
	}
	s.install()
	if result, err := w.reconciler.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != 0 {
		t.Errorf("once it is served: %+v, %v", result, err)
	}
	w.wantWrites(s.writes, ofTeam[0], ofTeam[0])
}

// Only the label shows which objects are the operator's. It may have left some in a namespace whose last Memcached was deleted while it was down.
func TestMonitoringLeavesObjectsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.install()
		theirs := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		theirs.SetUID("theirs")
		theirs.SetNamespace("team")
		theirs.SetName(shardsName)
		left := theirs.DeepCopy()
		left.SetNamespace("other")
		left.SetLabels(map[string]string{v1beta1.LabelManagedBy: v1beta1.ManagedByValue})
		s.objects["podmonitors team/"+shardsName], s.objects["podmonitors other/"+shardsName] = theirs, left
		w := newWorld(t, s, Options{}, memcached("team", "a", v1beta1.MonitoringSpec{}))
		w.start()
		got := w.pass(time.Hour)
		if slices.Contains(got, ofTeam[0]) || !slices.Contains(got, ofTeam[1]) || !slices.Contains(got, "delete podmonitors other/memcached-shards") {
			t.Errorf("it writes %q", got)
		}
		if err := w.memcacheds.Delete(t.Context(), memcached("team", "a", v1beta1.MonitoringSpec{})); err != nil {
			t.Fatal(err)
		}
		w.reconcile("team")
		w.wantWrites(w.pass(0), "delete prometheusrules team/memcached-shards")

		w.reconciling.Lock()
		w.reconciler.Options.Disabled = true
		w.reconciling.Unlock()
		got = w.pass(recheck)
		for _, write := range []string{"delete servicemonitors memcached-operator-system/memcached-operator", "delete configmaps memcached-operator-system/memcached-operator-dashboard-fleet"} {
			if !slices.Contains(got, write) {
				t.Errorf("off, it doesn't %s, but %q", write, got)
			}
		}
		if s.objects["podmonitors team/"+shardsName] == nil {
			t.Error("the operator deleted an object of others")
		}
	})
}

func TestRejectedMonitoringObjectIsRetried(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	terminating := apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		fails  error
		retry  bool
		later  bool // it isn't the object that is rejected
		exists func(*unstructured.Unstructured)
	}{
		"the API server is busy":         {fails: errors.New("busy"), retry: true},
		"the namespace was deleted":      {fails: gone, retry: true},
		"the namespace is being deleted": {fails: terminating},
		"the CRD isn't served":           {fails: notFound("podmonitors"), retry: true, later: true},
		"the object is being deleted":    {fails: errors.New("it is written"), exists: func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Now()}) }},
		"the object is as it is applied": {fails: errors.New("it is written"), exists: func(*unstructured.Unstructured) {}},
	} {
		s := newStore()
		s.fails = c.fails
		w := newWorld(t, s, Options{})
		target := w.reconciler.Options.shardTargets("team", []v1beta1.Memcached{*memcached("team", "a", v1beta1.MonitoringSpec{})})[0]
		if c.exists != nil {
			o := target.object.DeepCopy()
			c.exists(o)
			s.objects["podmonitors team/"+shardsName] = o
		}
		if err := w.reconciler.ensure(t.Context(), target); (err != nil) != c.retry || errors.Is(err, errNotServed) != c.later {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRejectedMonitoringObjectDelaysNoOther(t *testing.T) {
	s := newStore()
	s.fails = errors.New("a policy")
	w := newWorld(t, s, Options{}, memcached("team", "a", v1beta1.MonitoringSpec{}))
	for _, k := range []kind{podMonitor, prometheusRule} {
		w.reconciler.kinds.found[k] = func() {}
	}
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team"}})
	if w.wantWrites(s.writes, ofTeam...); err == nil {
		t.Error("it isn't retried")
	}
}

func TestPodMonitorScrapesShardsOfMemcachedsThatAreNotExcluded(t *testing.T) {
	o := Options{Labels: map[string]string{"release": "prometheus"}, Interval: "15s"}
	spec := func(memcacheds ...v1beta1.Memcached) string {
		target := o.shardTargets("team", memcacheds)[0]
		if target.object == nil {
			return ""
		}
		if got := target.object.GetLabels(); got["release"] != "prometheus" || got[v1beta1.LabelManagedBy] != v1beta1.ManagedByValue {
			t.Errorf("the labels are %v", got)
		}
		return fmt.Sprint(target.object.Object["spec"])
	}
	a, slabs, excluded := *memcached("team", "a", v1beta1.MonitoringSpec{}), *memcached("team", "b", v1beta1.MonitoringSpec{Details: []v1beta1.MonitoringDetail{v1beta1.MonitoringSlabs}}), *memcached("team", "c", v1beta1.MonitoringSpec{Mode: v1beta1.MonitoringDisabled})
	// A pod with the labels of a shard can't flood Prometheus, nor redirect its requests.
	all := spec(a)
	for _, words := range []string{"port:metrics", "interval:15s", "sampleLimit:5000", "labelLimit:32", "followRedirects:false"} {
		if !strings.Contains(all, words) {
			t.Errorf("no %s in %s", words, all)
		}
	}
	if strings.Contains(all, "__param_slabs") || strings.Contains(all, "action:drop") {
		t.Errorf("the PodMonitor scrapes %s", all)
	}
	some := spec(a, slabs, excluded)
	if !strings.Contains(some, "action:drop regex:c ") || !strings.Contains(some, "regex:b replacement:true") || !strings.Contains(some, "__param_slabs") {
		t.Errorf("the PodMonitor scrapes %s", some)
	}
	if got := spec(excluded); got != "" {
		t.Errorf("if all are excluded, the PodMonitor scrapes %s", got)
	}
}

func TestOnlyChangesOfMonitoringAreRelevant(t *testing.T) {
	was := memcached("team", "a", v1beta1.MonitoringSpec{})
	resized := was.DeepCopy()
	resized.Spec.Size = new(int32(3))
	for want, is := range map[bool]*v1beta1.Memcached{false: resized, true: memcached("team", "a", v1beta1.MonitoringSpec{Details: []v1beta1.MonitoringDetail{v1beta1.MonitoringSlabs}})} {
		if got := relevantChange().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != want {
			t.Errorf("%+v is relevant: %t", is.Spec, got)
		}
	}
}

// The golden file has all metrics, those of the slab classes for two of them.
func TestLimitsOfScrapesAdmitAllMetricsOfAShard(t *testing.T) {
	text, err := os.ReadFile("../../internal/agent/metrics/testdata/metrics.golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	const classes, targetLabels = 63, 9 // namespace, memcached, shard, pod, container, endpoint, instance, job and the name
	samples, ofClass, labels := 0, 0, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, `slab="5"`):
			ofClass++
		case !strings.Contains(line, `slab="12"`):
			samples++
		}
		labels = max(labels, strings.Count(line, `="`))
	}
	if ofClass == 0 || samples == 0 || samples+classes*ofClass > sampleLimit || labels+targetLabels > labelLimit {
		t.Errorf("a shard has %d samples and %d more for each of %d classes, of at most %d; and up to %d+%d labels, of at most %d",
			samples, ofClass, classes, sampleLimit, targetLabels, labels, labelLimit)
	}
}

func TestMonitoringSettingsAreRejectedWithTheirName(t *testing.T) {
	for variables, want := range map[string]string{
		"MONITORING=on":                         "MONITORING",
		"MONITORING=off":                        "",
		"MONITORING=false":                      "",
		"MONITORING_INTERVAL=often":             "MONITORING_INTERVAL",
		"MONITORING_LABELS=release=a,team=b c":  "MONITORING_LABELS",
		"MONITORING_LABELS=release":             "MONITORING_LABELS",
		"MONITORING_LABELS=release=a, team=b":   "",
		"MONITORING_NAMESPACES=monitoring, p8s": "",
		"MONITORING_NAMESPACES=Prometheus":      "MONITORING_NAMESPACES",
		"MONITORING_INTERVAL=2m":                "",
		"MONITORING_INTERVAL=121s":              "MONITORING_INTERVAL",
		"MONITORING_INTERVAL=5m":                "MONITORING_INTERVAL",
		"MONITORING_TOKEN_SECRET=reader":        "",
		"MONITORING_TOKEN_SECRET=a/b":           "MONITORING_TOKEN_SECRET",
		"MONITORING_CA_SECRET=Metrics":          "MONITORING_CA_SECRET",
		"MONITORING_DASHBOARD_NAMESPACE=charts": "",
	} {
		name, value, _ := strings.Cut(variables, "=")
		o, err := ParseOptions(func(n string) string {
			if n == name {
				return value
			}
			return ""
		}, "system")
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", variables, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v", variables, err)
		case name == "MONITORING" && want == "" && !o.Disabled, name == "MONITORING_NAMESPACES" && want == "" && !slices.Equal(o.Namespaces, []string{"monitoring", "p8s"}), name == "MONITORING_DASHBOARD_NAMESPACE" && o.DashboardNamespace != value, name == "MONITORING_INTERVAL" && want == "" && o.Interval != value:
			t.Errorf("%s: %+v", variables, o)
		}
	}
}

// Two operators for different namespaces can have the same Prometheus.
func TestAlertIsAboutTheOperatorOfItsNamespace(t *testing.T) {
	for namespace, want := range map[string]string{"": "memcached_operator_leader", "shop": `memcached_operator_leader{namespace="shop"}`} {
		expr := operatorDown(namespace).expr
		if names := strings.Count(expr, "memcached_"); names == 0 || strings.Count(expr, want) != names || namespace == "" && strings.Contains(expr, "namespace") {
			t.Errorf("namespace %q: of %d series, some aren't %s: %s", namespace, names, want, expr)
		}
	}
}

// Without enforcedNamespaceLabel, each Prometheus evaluates the rules of all namespaces. Other memcached_exporters have the same names.
func TestRulesAreAboutTheShardsOfTheirNamespace(t *testing.T) {
	for namespace, want := range map[string]string{"": `{memcached!=""`, "shop": `{namespace="shop",memcached!=""`} {
		for _, r := range ShardRules(namespace)["groups"].([]any)[0].(map[string]any)["rules"].([]any) {
			expr := r.(map[string]any)["expr"].(string)
			if names := strings.Count(expr, "memcached_") + strings.Count(expr, "memcached:"); names == 0 || strings.Count(expr, want) != names {
				t.Errorf("namespace %q: of %d series, some lack %s: %s", namespace, names, want, expr)
			}
		}
	}
	rules := Options{}.shardTargets("shop", []v1beta1.Memcached{*memcached("shop", "a", v1beta1.MonitoringSpec{})})[1].object
	if !contains(rules.Object["spec"], ShardRules("shop")) {
		t.Errorf("the PrometheusRule is %v", rules.Object)
	}
}

// In mode Permissive, memcached doesn't know all connections.
func TestPanelsCountTheConnectionsThatAlertsCount(t *testing.T) {
	for _, metric := range []string{"memcached_agent_silent_connections", "memcached_agent_connections_refused_total"} {
		if alerts, panels := fmt.Sprint(ShardRules("")), string(Dashboards()["memcached"]); !strings.Contains(alerts, metric) || !strings.Contains(panels, metric+"{"+strings.ReplaceAll(ofShards, `"`, `\"`)+"}") {
			t.Errorf("no alert, or no panel, counts %s", metric)
		}
	}
}

// Prometheus Operator rejects a ServiceMonitor that reads files where the administrator denies that, and a Prometheus that
// verifies no certificate presents its own token to what answers at the address.
func TestSecretsKeepTheTokenOfPrometheus(t *testing.T) {
	o := Options{OperatorNamespace: "operator"}
	endpoint := func() map[string]any {
		all, _, err := unstructured.NestedSlice(o.operatorTargets()[0].object.Object, "spec", "endpoints")
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0].(map[string]any)
	}
	if e := endpoint(); e["bearerTokenFile"] == nil || e["authorization"] != nil || !contains(e["tlsConfig"], map[string]any{"insecureSkipVerify": true}) {
		t.Errorf("without Secrets: %v", e)
	}
	o.TokenSecret, o.CASecret = "reader", "metrics"
	e := endpoint()
	if _, file := e["bearerTokenFile"]; file || !contains(e["authorization"], map[string]any{"credentials": map[string]any{"name": "reader", "key": "token"}}) {
		t.Errorf("with a token: %v", e)
	}
	if _, skipped := e["tlsConfig"].(map[string]any)["insecureSkipVerify"]; skipped || !contains(e["tlsConfig"], map[string]any{
		"serverName": "memcached-operator-controller-manager-metrics-service.operator.svc", "ca": map[string]any{"secret": map[string]any{"name": "metrics", "key": "ca.crt"}}}) {
		t.Errorf("with a CA: %v", e)
	}
}
