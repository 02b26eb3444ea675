package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/testcert"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/prometheus"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	// shorter divides the windows and the waits of the rules.
	shorter = 60
	// recordingsVariable names the folder to which tests write recordings, for "make dashboards" and "make recording".
	recordingsVariable = "RECORDINGS"
)

// monitored is a namespace with Memcacheds that a Prometheus scrapes as the objects of the operator say.
type monitored struct {
	*space
	server *prometheus.Server
	began  time.Time
	// kinds is the folder in which kubectl caches the kinds of an address for hours, by default also those of a former cluster.
	kinds string
	// fired has the Memcached of each alert that has fired.
	fired map[string]string
}

// A real Prometheus scrapes as the PodMonitor and the ServiceMonitor say, and evaluates the PrometheusRules with windows and
// waits that are shorter by one factor. Alerts about what a test can do to a cluster fire and resolve. Each query of the
// dashboards has data.
func TestAlertsFireAndResolveAndDashboardsHaveData(t *testing.T) {
	rest.others.Add(1)
	t.Cleanup(rest.others.Done)
	t.Parallel()
	s := monitored{space: newSpace(t), began: time.Now(), kinds: t.TempDir(), fired: map[string]string{}}
	s.createCRDs()
	operator := s.operatorPod()
	s.Must(client.IgnoreNotFound(k.Delete(s.Ctx, &operator))) // it looks for the CRDs when it starts

	store := s.Claim()
	slabs := func(spec *v1beta1.MemcachedSpec) {
		spec.Monitoring.Details = []v1beta1.MonitoringDetail{v1beta1.MonitoringSlabs}
	}
	before := versions[len(versions)/2]
	s.Apply("updated", suite.Small(3, slabs, suite.Version(before)))
	s.Apply("crowded", suite.Small(1, suite.Threads(1), func(spec *v1beta1.MemcachedSpec) { spec.Config.MaxConnections = new(int32(256)) }))
	s.Apply("refusing", suite.Small(1, suite.Arguments("-M", "-X")))
	s.Apply("frozen", suite.Small(1))
	s.Apply("hung", suite.Small(1))
	s.Apply("limping", suite.Small(3))
	crt, key := testcert.NewCA("shards").Issue(testcert.Options{Names: []string{"*." + s.Namespace + ".svc.cluster.local"}})
	s.Must(k.Create(s.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "lost-tls"}, Data: map[string][]byte{"tls.crt": crt, "tls.key": key}}))
	s.Apply("lost", suite.Small(1, func(spec *v1beta1.MemcachedSpec) { spec.TLS = v1beta1.TLSSpec{Mode: v1beta1.TLSRequired} }))
	s.Apply("stuck", suite.Small(1, suite.Version(before)))
	for _, name := range []string{"updated", "crowded", "refusing", "frozen", "hung", "limping", "lost", "stuck"} {
		s.Available(name)
	}
	s.start()

	s.load("updated", func(c *protocol.Conn, i int) error {
		if i < 100 || i%25 == 0 { // more than its memory, and evictions until the end
			return c.Set(s.Ctx, fmt.Sprintf("large-%d", i), make([]byte, 900_000), 0)
		}
		if i%5 == 0 {
			return c.Set(s.Ctx, fmt.Sprintf("key-%d", i/5%50), make([]byte, 100+i/5%50*100), 0)
		}
		_, _, err := c.Get(s.Ctx, fmt.Sprintf("key-%d", i%60), " v") // one of six is missing
		return err
	})
	full := s.load("refusing", func(c *protocol.Conn, i int) error {
		// memcached does not count an item of several chunks
		return c.Set(s.Ctx, fmt.Sprintf("key-%d", i), make([]byte, 400_000), 0)
	})
	crowd := s.crowd("crowded")
	s.Apply("stuck", suite.Small(1, suite.Version("1.6.999")))
	s.signal("lost", 0, syscall.SIGKILL)
	s.signal("frozen", 0, syscall.SIGSTOP)
	hungSince := time.Now()
	s.signal("hung", 0, syscall.SIGSTOP)
	s.signal("limping", 1, syscall.SIGSTOP)
	backup := func(memcached string) *v1beta1.MemcachedBackup {
		spec := v1beta1.MemcachedBackupSpec{MemcachedRef: v1beta1.MemcachedReference{Name: memcached}, Store: store}
		b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: memcached}, Spec: spec}
		s.Must(k.Create(s.Ctx, b))
		return b
	}
	failed := backup("refusing")
	schedule := &v1beta1.MemcachedScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "yearly"}}
	schedule.Spec.Schedule, schedule.Spec.BackupTemplate.Spec = "0 0 1 1 *", failed.Spec
	s.Must(k.Create(s.Ctx, schedule))

	s.Apply("updated", suite.Small(3, slabs, suite.Version(defaultVersion)))
	s.fires("MemcachedShardNotAnswering", "frozen")
	s.fires("MemcachedDown", "frozen")
	s.fires("MemcachedShardsNotReady", "limping")
	s.signal("frozen", 0, syscall.SIGCONT)
	s.signal("limping", 1, syscall.SIGCONT)
	s.Updated("updated")
	s.Must(k.Complete(s.Ctx, backup("updated"), nil))
	s.Apply("updated", suite.Small(4, slabs, suite.Version(defaultVersion)))
	s.fires("MemcachedShardLostItems", "lost")
	s.fires("MemcachedConnectionsRefused", "crowded")
	s.fires("MemcachedConnectionsNearLimit", "crowded")
	crowd()
	s.fires("MemcachedWritesRefused", "refusing")
	full()
	s.fires("MemcachedBackupFailed", "refusing")
	s.Must(k.Delete(s.Ctx, failed))
	s.Available("updated")
	s.Apply("updated", suite.Small(3, slabs, suite.Version(defaultVersion)))
	s.fires("MemcachedDegraded", "stuck")
	s.fires("MemcachedUpdateStuck", "stuck")
	s.Apply("stuck", suite.Small(1, suite.Version(before)))
	s.Available("updated")

	for alert, memcached := range s.fired {
		s.resolves(alert, memcached)
	}
	await(t, &rest.events)
	s.operators(0) // while the kubelet's probes of the shard that hangs fail
	s.fires("MemcachedOperatorDown", "")
	s.operators(1)
	s.resolves("MemcachedOperatorDown", "")
	s.wasRestarted("hung", hungSince)

	s.dashboards()
}

// createCRDs creates the CRDs of prometheus-operator that the operator knows.
func (s monitored) createCRDs() {
	s.Helper()
	folder := os.Getenv("PROMETHEUS_CRDS")
	for _, name := range []string{"podmonitors", "prometheusrules", "servicemonitors"} {
		content, err := os.ReadFile(filepath.Join(folder, "monitoring.coreos.com_"+name+".yaml"))
		s.Must(err)
		crd := &unstructured.Unstructured{}
		s.Must(yaml.Unmarshal(content, crd))
		s.Must(k.Create(s.Ctx, crd))
		s.Finally(func(ctx context.Context) error { return client.IgnoreNotFound(k.Delete(ctx, crd)) })
		s.Eventually("the CRD "+crd.GetName(), func(ctx context.Context) error {
			if err := k.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
			for _, c := range conditions {
				if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
					return nil
				}
			}
			return errors.New("it is not established")
		})
	}
	if rest.namespace != "" {
		rest.monitored++
	}
}

// object waits for an object of the operator.
func (s monitored) object(kind, namespace, name string) *unstructured.Unstructured {
	s.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: kind})
	s.Eventually(kind+" "+name, func(ctx context.Context) error {
		return k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	})
	return o
}

// reader returns a token of a ServiceAccount with the role of a reader of metrics.
func (s monitored) reader() string {
	s.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "prometheus"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "host-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "memcached-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: account.Name}},
	}
	s.Must(errors.Join(k.Create(s.Ctx, account), k.Create(s.Ctx, binding)))
	s.Finally(func(ctx context.Context) error { return k.Delete(ctx, binding) })
	request := &authenticationv1.TokenRequest{}
	s.Must(k.SubResource("token").Create(s.Ctx, account, request))
	return request.Status.Token
}

// start starts Prometheus with what the operator made for it.
func (s *monitored) start() {
	s.Helper()
	dir := s.TempDir()
	token := s.reader()
	var scrapes []prometheus.Scrape
	var groups []any
	for _, of := range []struct{ namespace, name, monitor string }{
		{s.Namespace, "memcached-shards", "PodMonitor"},
		{cluster.OperatorNamespace, "memcached-operator", "ServiceMonitor"},
	} {
		scrape, err := prometheus.ScrapeOf(s.object(of.monitor, of.namespace, of.name), filepath.Join(dir, of.monitor+".json"), token)
		s.Must(err)
		scrapes = append(scrapes, scrape)
		rules, _, err := unstructured.NestedSlice(s.object("PrometheusRule", of.namespace, of.name).Object, "spec", "groups")
		s.Must(err)
		prometheus.Shorten(rules, shorter)
		groups = append(groups, rules...)
	}
	s.Must(s.discover(s.Ctx, dir))
	ctx, stop := context.WithCancel(s.Ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for cluster.Sleep(ctx, time.Second) == nil {
			if err := s.discover(ctx, dir); err != nil && ctx.Err() == nil {
				s.Logf("service discovery: %v", err) // and again in a second
			}
		}
	})
	var err error
	s.server, err = prometheus.Start(dir, scrapes, groups)
	s.Must(err)
	s.began = time.Now()
	s.Cleanup(func() {
		stop()
		running.Wait()
		if output := s.server.Stop(); s.Failed() {
			s.Logf("output of Prometheus:\n%s", output)
		}
	})
	s.Eventually("both jobs are scraped", func(ctx context.Context) error {
		all, err := s.server.Now(ctx, `memcached_up == 1 or memcached_operator_leader == 1`)
		if err == nil && len(all) < 2 {
			err = fmt.Errorf("there are only %v", all)
		}
		return err
	})
}

// discover writes what service discovery finds: a target for each port of a container in the namespace, and one for each
// address behind a Service of the operator's.
func (s monitored) discover(ctx context.Context, dir string) error {
	var shards, operators []prometheus.Target
	var pods corev1.PodList
	if err := k.List(ctx, &pods, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			for _, port := range c.Ports {
				if pod.Status.PodIP != "" {
					shards = append(shards, prometheus.NewTarget(net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port.ContainerPort))), pod.Namespace, pod.Name,
						"pod", pod.Labels, map[string]string{"pod_container_port_name": port.Name}))
				}
			}
		}
	}
	var slices discoveryv1.EndpointSliceList
	if err := k.List(ctx, &slices, client.InNamespace(cluster.OperatorNamespace)); err != nil {
		return err
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			for _, port := range slice.Ports {
				if endpoint.TargetRef != nil && port.Port != nil && port.Name != nil {
					// A slice has the labels of its Service.
					operators = append(operators, prometheus.NewTarget(net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))), slice.Namespace, endpoint.TargetRef.Name,
						"service", slice.Labels, map[string]string{"endpoint_port_name": *port.Name}))
				}
			}
		}
	}
	for name, targets := range map[string][]prometheus.Target{"PodMonitor": shards, "ServiceMonitor": operators} {
		content, err := json.Marshal(append([]prometheus.Target{}, targets...))
		if err != nil {
			return err
		}
		path := filepath.Join(dir, name+".json")
		if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil {
			return err
		}
	}
	return nil
}

// load does operations on the shards of a Memcached, 50 a second, until it is stopped. After an error it
// continues with another connection.
func (s monitored) load(name string, do func(*protocol.Conn, int) error) (stop func()) {
	s.Helper()
	addresses, err := k.AnsweringAddresses(s.Ctx, s.Key(name), len(s.Pods(name)))
	s.Must(err)
	return s.beside(addresses, func(ctx context.Context, address string) {
		var c *protocol.Conn
		for i := 0; cluster.Sleep(ctx, 20*time.Millisecond) == nil; i++ {
			if c == nil {
				var err error
				if c, err = protocol.At(address).Dial(ctx); err != nil {
					c = nil
					continue
				}
			}
			if err := do(c, i); err != nil && !protocol.IsAnswer(err) {
				_ = c.Close()
				c = nil
			}
		}
	})
}

// beside runs a client of each address until they are stopped.
func (s monitored) beside(addresses []string, client func(ctx context.Context, address string)) (stop func()) {
	ctx, cancel := context.WithCancel(s.Ctx)
	var running sync.WaitGroup
	for _, address := range addresses {
		running.Go(func() { client(ctx, address) })
	}
	stop = func() { cancel(); running.Wait() }
	s.Cleanup(stop)
	return stop
}

// crowd keeps more connections open than a shard accepts, until it is stopped.
func (s monitored) crowd(name string) (stop func()) {
	s.Helper()
	return s.beside([]string{s.Address(name, 0)}, func(ctx context.Context, address string) {
		var all []net.Conn
		for cluster.Sleep(ctx, 10*time.Millisecond) == nil {
			if c, err := new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
				all = append(all, c)
			}
			if len(all) > 1000 { // many of them are rejected
				_ = all[0].Close()
				all = all[1:]
			}
		}
		for _, c := range all {
			_ = c.Close()
		}
	})
}

// signal sends a signal to the memcached of a shard.
func (s monitored) signal(name string, ordinal int, signal syscall.Signal) {
	s.Helper()
	s.Must(syscall.Kill(s.process(s.Pods(name)[cluster.ShardName(name, ordinal)], "memcached"), signal))
}

// wasRestarted waits until the pod of a Memcached whose memcached hung is ready again.
func (s monitored) wasRestarted(name string, since time.Time) {
	s.Helper()
	m := s.Await(name, "a restart", func(m *v1beta1.Memcached) error {
		if shard := m.Status.Shards[0]; shard.StartTime == nil || shard.StartTime.Time.Before(since) || !shard.Ready {
			return fmt.Errorf("%+v", shard)
		}
		return nil
	})
	if start := s.Shard(m, 0).StartResult; start != v1beta1.StartCold {
		s.Errorf("%s: the start is %s", name, start)
	}
	pod := s.Pods(name)[cluster.ShardName(name, 0)]
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodReady {
			continue
		}
		s.Logf("%s: ready again %s after memcached hung, with %d restarts", name, c.LastTransitionTime.Sub(since).Round(time.Second), pod.Status.ContainerStatuses[0].RestartCount)
	}
}

// operators scales the operator.
func (s monitored) operators(replicas int) {
	s.Helper()
	set := func(ctx context.Context, replicas int) error {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.OperatorNamespace, Name: cluster.OperatorDeployment}}
		return k.Patch(ctx, d, client.RawPatch("application/merge-patch+json", patch))
	}
	s.Finally(func(ctx context.Context) error { return set(ctx, 1) })
	s.Must(set(s.Ctx, replicas))
}

// alert selects an alert of the namespace, or one about the operator if the name of a Memcached is empty.
func (s monitored) alert(name, memcached string) string {
	labels := fmt.Sprintf(`alertname=%q`, name)
	if memcached != "" {
		labels += fmt.Sprintf(`,namespace=%q,memcached=%q`, s.Namespace, memcached)
	}
	return labels
}

// fires waits until an alert has fired.
func (s monitored) fires(name, memcached string) {
	s.Helper()
	s.Eventually(name+" fires for "+memcached, func(context.Context) error {
		if len(s.history(`ALERTS{alertstate="firing",`+s.alert(name, memcached)+`}`)) == 0 {
			return fmt.Errorf("the alerts are %v", s.now(`ALERTS`))
		}
		return nil
	})
	s.Logf("%s: %s fired for %s", time.Since(s.began).Round(time.Second), name, memcached)
	s.fired[name] = memcached
	s.runbook(name, memcached)
}

// runbook runs the commands of the runbook of an alert.
func (s monitored) runbook(name, memcached string) {
	s.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/runbooks", name+".md"))
	s.Must(err)
	ran := 0
	for i, part := range strings.Split(string(text), "```") {
		script, isShell := strings.CutPrefix(part, "shell\n")
		if i%2 == 0 || !isShell {
			continue
		}
		ran++
		// The backup of a Memcached has its name here, and the shard is the first one.
		script = strings.NewReplacer("<namespace>", s.Namespace, "<memcached>", memcached, "<backup>", memcached, "<shard>", "0").Replace(script)
		cmd := exec.CommandContext(s.Ctx, "bash", "-euo", "pipefail", "-c", script)
		cmd.Env = append(os.Environ(), "KUBECACHEDIR="+s.kinds)
		out, err := cmd.CombinedOutput()
		if err != nil || len(out) == 0 {
			s.Errorf("the commands of the runbook of %s: %v: %s\n%s", name, err, out, script)
		}
	}
	if ran == 0 {
		s.Errorf("the runbook of %s has no commands", name)
	}
}

// resolves waits until an alert does no longer fire, and is not about to.
func (s monitored) resolves(name, memcached string) {
	s.Helper()
	s.Eventually(name+" resolves for "+memcached, func(context.Context) error {
		if all := s.now(`ALERTS{` + s.alert(name, memcached) + `}`); len(all) > 0 {
			return fmt.Errorf("it is %v", all)
		}
		return nil
	})
}

// history returns the series of a query since Prometheus started.
func (s monitored) history(query string) []prometheus.Series {
	s.Helper()
	all, err := s.server.Range(s.Ctx, query, s.began, time.Now(), prometheus.Interval)
	s.Must(err)
	return all
}

func (s monitored) now(query string) []map[string]string {
	s.Helper()
	all, err := s.server.Now(s.Ctx, query)
	s.Must(err)
	var labels []map[string]string
	for _, series := range all {
		labels = append(labels, series.Labels)
	}
	return labels
}

// dashboards fails the test for each query of the dashboards that has no data. It records them if that is what
// the test runs for.
func (s monitored) dashboards() {
	s.Helper()
	for _, name := range []string{"memcached", "fleet"} {
		var content corev1.ConfigMap
		s.Must(k.Get(s.Ctx, client.ObjectKey{Namespace: cluster.OperatorNamespace, Name: "memcached-operator-dashboard-" + name}, &content))
		d, err := prometheus.ParseDashboard([]byte(content.Data["memcached-"+name+".json"]))
		s.Must(err)
		query := func(expr, memcached string) []prometheus.Series {
			return s.history(strings.NewReplacer("$__rate_interval", "10s", "$namespace", s.Namespace, "$memcached", memcached, "$shard", ".*").Replace(expr))
		}
		checked := 0
		for _, p := range d.AllPanels() {
			for _, target := range p.Targets {
				checked++
				if len(query(target.Expr, ".*")) == 0 {
					s.Errorf("the panel %q of the dashboard %s has no data: %s", p.Title, name, target.Expr)
				}
			}
		}
		if checked < 15 {
			s.Errorf("only %d queries of the dashboard %s were checked", checked, name)
		}
		if folder := os.Getenv(recordingsVariable); folder != "" {
			recording, err := json.Marshal(d.Record(s.began, time.Now(), func(expr string) []prometheus.Series { return query(expr, "updated") }))
			s.Must(err)
			s.Must(os.WriteFile(filepath.Join(folder, "dashboard-"+name+".json"), recording, 0o600))
		}
	}
}
