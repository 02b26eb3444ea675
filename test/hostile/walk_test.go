package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/suite"
)

const (
	cache    = "cache"
	shards   = 2
	perShard = 2000
)

func TestCacheLivesOnHostilePlatform(t *testing.T) {
	for _, hand := range hands(t) {
		var names []string
		for _, c := range hand {
			names = append(names, c.name)
		}
		name := strings.Join(names, "+")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Logf("repeat it with ARGS=-conditions=%s", name)
			begin(t, hand).run()
		})
	}
}

// hands returns the conditions of each walk.
func hands(t *testing.T) [][]condition {
	t.Helper()
	var all [][]condition
	switch {
	case *given == "each":
		for _, c := range conditions {
			all = append(all, []condition{c})
		}
	case *given != "":
		for walk := range strings.SplitSeq(*given, ",") {
			var hand []condition
			for name := range strings.SplitSeq(walk, "+") {
				i := slices.IndexFunc(conditions, func(c condition) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("there is no condition %q", name)
				}
				hand = append(hand, conditions[i])
			}
			all = append(all, hand)
		}
	default:
		all = drawn(*walks)
	}
	return all
}

// drawn deals all conditions before any comes again, four to seven for each walk.
func drawn(walks int) [][]condition {
	var all [][]condition
	var deck []int
	for range walks {
		var hand []int
		for size := 4 + rand.IntN(4); len(hand) < size; {
			if len(deck) == 0 {
				deck = rand.Perm(len(conditions))
			}
			card := deck[0]
			deck = deck[1:]
			kind := conditions[card].kind
			if !slices.ContainsFunc(hand, func(i int) bool { return i == card || kind != "" && conditions[i].kind == kind }) {
				hand = append(hand, card)
			}
		}
		slices.Sort(hand)
		var walk []condition
		for _, i := range hand {
			walk = append(walk, conditions[i])
		}
		all = append(all, walk)
	}
	return all
}

// walk is a cache on a platform.
type walk struct {
	*suite.Space
	hand     []condition
	store    v1beta1.SnapshotStore
	resolver *net.Resolver
	rejects  *corev1.ResourceQuota
}

// begin creates the conditions and waits until each is in force.
func begin(t *testing.T, hand []condition) *walk {
	t.Helper()
	w := &walk{Space: suite.New(t), hand: hand}
	nameserver := w.nameserver()
	w.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(nameserver, "53"))
	}}
	s := site{namespace: w.Namespace, nameserver: nameserver, digests: map[string]string{}}
	if slices.ContainsFunc(hand, func(c condition) bool { return c.name == "image-digest" }) {
		for _, version := range []string{former, newest} {
			s.digests[version] = w.digest(version)
		}
	}
	w.store = w.Claim()
	for _, c := range hand {
		s.condition = c.name
		for _, o := range c.objects(s) {
			w.create(o)
			if quota, ok := o.(*corev1.ResourceQuota); ok {
				w.inForce(quota)
				if c.rejects {
					w.rejects = quota
				}
			}
		}
		if c.seen != "" {
			w.Eventually("condition "+c.name, func(ctx context.Context) error {
				if seen := w.dryRun(ctx, c.name); !strings.Contains(seen, c.seen) {
					return fmt.Errorf("a pod's dry run returns %s", seen)
				}
				return nil
			})
		}
	}
	return w
}

// nameserver returns the address of the cluster's DNS, which the kubelet writes into pods.
func (w *walk) nameserver() string {
	w.Helper()
	var nodes corev1.NodeList
	w.Must(k.List(w.Ctx, &nodes))
	var answer []byte
	w.Eventually("the kubelet's configuration", func(ctx context.Context) (err error) { // a busy kubelet is late
		answer, err = k.Set.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[0].Name).SubResource("proxy").Suffix("configz").DoRaw(ctx)
		return err
	})
	var config struct {
		Kubelet struct{ ClusterDNS []string } `json:"kubeletconfig"`
	}
	w.Must(json.Unmarshal(answer, &config))
	if len(config.Kubelet.ClusterDNS) == 0 {
		w.Fatalf("the kubelet's configuration has no nameserver: %s", answer)
	}
	return config.Kubelet.ClusterDNS[0]
}

// create creates an object. The cluster's own are deleted with the test, and another walk may have created them.
func (w *walk) create(o client.Object) {
	w.Helper()
	err := k.Create(w.Ctx, o)
	if o.GetNamespace() == "" {
		if err != nil && k.Get(w.Ctx, client.ObjectKeyFromObject(o), o) == nil {
			err = nil
		}
		w.Finally(func(ctx context.Context) error { return client.IgnoreNotFound(k.Delete(ctx, o)) })
	}
	w.Must(err)
}

// inForce waits until the API server enforces a quota: it rejects every pod before.
func (w *walk) inForce(quota *corev1.ResourceQuota) {
	w.Helper()
	w.Eventually("quota "+quota.Name, func(ctx context.Context) error {
		if err := k.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		for name, hard := range quota.Spec.Hard {
			if has, ok := quota.Status.Hard[name]; !ok || has.Cmp(hard) != 0 {
				return fmt.Errorf("its status is %+v", quota.Status)
			}
		}
		return nil
	})
}

// dryRun returns what the API server makes of a plain pod, to which of all policies that of one condition applies.
func (w *walk) dryRun(ctx context.Context, condition string) string {
	pod := w.plainPod("docker.io/library/memcached:" + newest)
	pod.Labels = map[string]string{probeLabel: condition}
	if err := k.Create(ctx, pod, client.DryRunAll); err != nil {
		return err.Error()
	}
	text, err := json.Marshal(pod.Spec)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (w *walk) plainPod(image string) *corev1.Pod {
	c := sidecar("plain")
	c.Image, c.Command, c.SecurityContext.ReadOnlyRootFilesystem = image, nil, nil
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "plain-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
}

// digest returns the name of a version's image with its digest, from a pod that has run it.
func (w *walk) digest(version string) string {
	w.Helper()
	pod := w.plainPod("docker.io/library/memcached:" + version)
	w.Must(k.Create(w.Ctx, pod))
	w.Eventually("the digest of "+version, func(ctx context.Context) error {
		if err := k.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses; len(s) == 0 || s[0].ImageID == "" {
			return errors.New("the pod has none")
		}
		return nil
	})
	w.Must(k.Delete(w.Ctx, pod, client.GracePeriodSeconds(0)))
	return pod.Status.ContainerStatuses[0].ImageID
}

// spec is what a user on this platform writes.
func (w *walk) spec(version string, changes ...suite.Change) v1beta1.MemcachedSpec {
	spec := suite.Small(shards, suite.Version(version), func(spec *v1beta1.MemcachedSpec) {
		spec.DeletionPolicy, spec.Backup.Final = v1beta1.DeletionBackup, &v1beta1.FinalBackup{Store: w.store}
	})
	for _, c := range w.hand {
		if c.user != nil {
			c.user(&spec)
		}
		if c.repository != "" {
			spec.Version, spec.Pod.Image = "", c.repository+":"+version
		}
	}
	for _, change := range changes {
		change(&spec)
	}
	return spec
}

func (w *walk) run() {
	w.rejected("the cache", func() { w.Apply(cache, w.spec(former)) }, w.degraded)
	w.available(former)
	for ordinal := range shards {
		w.Written(cache, ordinal, perShard)
	}
	hold := func(step string) {
		w.Helper()
		for ordinal := range shards {
			w.Holds(w.Items(cache, ordinal, perShard))
		}
		w.Logf("%s: the items are there", step)
	}

	w.rejected("the upgrade", func() { w.Apply(cache, w.spec(newest)) }, w.degraded)
	w.available(newest)
	hold("upgrade")
	threads := suite.Threads(2)
	w.Apply(cache, w.spec(newest, threads))
	w.available(newest)
	hold("threads")
	w.Apply(cache, w.spec(newest, threads, func(spec *v1beta1.MemcachedSpec) { spec.Config.MaxConnections = new(int32(1500)) }))
	m := w.available(newest)
	hold("connections")

	b := &v1beta1.MemcachedBackup{ObjectMeta: w.key("first"), Spec: v1beta1.MemcachedBackupSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: cache}, Store: w.store,
	}}
	w.rejected("the backup", func() { w.Must(k.Create(w.Ctx, b)) }, w.says(b))
	w.completes(b)
	for ordinal := range shards {
		w.Must(items.Flush(w.Address(cache, ordinal)))
	}
	r := &v1beta1.MemcachedRestore{ObjectMeta: w.key("first"), Spec: v1beta1.MemcachedRestoreSpec{
		MemcachedRef: v1beta1.MemcachedReference{Name: cache}, BackupRef: &v1beta1.BackupReference{Name: b.Name},
	}}
	w.rejected("the restore", func() { w.Must(k.Create(w.Ctx, r)) }, w.says(r))
	w.Must(k.Complete(w.Ctx, r, nil))
	hold("restore")

	final := &v1beta1.MemcachedBackup{ObjectMeta: w.key("cache-final-" + string(m.UID[:8]))}
	w.rejected("the final backup", func() { w.Must(k.Delete(w.Ctx, m)) }, w.says(final))
	w.Gone(&v1beta1.Memcached{}, cache)
	w.completes(final)

	w.rejected("the bootstrap", func() {
		w.Apply(cache, w.spec(newest, func(spec *v1beta1.MemcachedSpec) {
			spec.Backup.Bootstrap = &v1beta1.Bootstrap{BackupRef: &v1beta1.BackupReference{Name: final.Name}}
			spec.DeletionPolicy, spec.Backup.Final = v1beta1.DeletionDelete, nil
		}))
	}, w.degraded)
	w.Await(cache, "ready", func(m *v1beta1.Memcached) error {
		if !meta.IsStatusConditionTrue(m.Status.Conditions, v1beta1.ConditionReady) {
			return fmt.Errorf("its conditions are %+v, its bootstrap %+v", m.Status.Conditions, m.Status.Bootstrap)
		}
		return nil
	})
	hold("bootstrap")
	w.nothingElseRuns()
	w.resolve(m.Status.Servers)
}

func (w *walk) key(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: name}
}

// available waits until all shards run a version and are up to date.
func (w *walk) available(version string) *v1beta1.Memcached {
	w.Helper()
	m := w.Updated(cache)
	for _, shard := range m.Status.Shards {
		if shard.Version != version {
			w.Errorf("the shard's version should be %s, and its status is %+v", version, shard)
		}
	}
	return m
}

// rejected takes a step, on some platforms while the API server rejects all new pods. It waits until the status says so,
// and then no longer rejects them: what follows needs no user.
func (w *walk) rejected(what string, step func(), said func(context.Context) error) {
	w.Helper()
	if w.rejects == nil {
		step()
		return
	}
	former := w.rejects.Spec.Hard[corev1.ResourcePods]
	w.pods("0")
	step()
	w.Eventually(what+" is rejected", said)
	w.pods(former.String())
}

func (w *walk) pods(n string) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"hard":{"pods":%q}}}`, n)
	w.Must(k.Patch(w.Ctx, w.rejects, client.RawPatch("application/merge-patch+json", patch)))
	w.inForce(w.rejects)
}

const rejection = "exceeded quota"

// degraded returns an error unless the Memcached is Degraded for the rejection.
func (w *walk) degraded(ctx context.Context) error {
	m, err := k.Memcached(ctx, w.Key(cache))
	if err != nil {
		return err
	}
	c := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionDegraded)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, rejection) {
		return fmt.Errorf("Degraded is %+v", c)
	}
	return nil
}

// says returns a check that a backup or restore reports the rejection.
func (w *walk) says(o client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := k.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if status := cluster.RunStatus(o); !strings.Contains(status.Message(), rejection) {
			return fmt.Errorf("it is %s: %s: %s", status.Phase, status.Reason(), status.Message())
		}
		return nil
	}
}

// completes waits until a backup is Complete and fails the test unless it has all items.
func (w *walk) completes(b *v1beta1.MemcachedBackup) {
	w.Helper()
	w.Must(k.Complete(w.Ctx, b, nil))
	if n := b.Status.Snapshot.Items; n != shards*perShard {
		w.Errorf("backup %s has %d items of %d", b.Name, n, shards*perShard)
	}
}

// resolve ends the test unless servers resolve as they are, whatever search domains a client has.
func (w *walk) resolve(servers []string) {
	w.Helper()
	if len(servers) != shards {
		w.Errorf("the servers are %v", servers)
	}
	for _, server := range servers {
		host, _, err := net.SplitHostPort(server)
		w.Must(err)
		w.Eventually(server+" resolves without search domains", func(ctx context.Context) error { // a busy name server is late
			_, err := w.resolver.LookupHost(ctx, host+".")
			return err
		})
	}
}

// nothingElseRuns waits until no pod runs but those of shards: sidecars keep no finished pod alive.
func (w *walk) nothingElseRuns() {
	w.Helper()
	w.Eventually("no pod but the shards'", func(ctx context.Context) error {
		var all corev1.PodList
		if err := k.List(ctx, &all, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for _, pod := range all.Items {
			isShard := pod.Labels[v1beta1.LabelName] == v1beta1.NameValue
			if !isShard && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
}
