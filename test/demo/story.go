package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/olm"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

const (
	sample    = "config/samples/cache_v1alpha1_memcached.yaml"
	namespace = "default"
	// subscription is how people install the operator by OLM.
	subscription = "config/samples/olm"
	// catalog is the image that config/samples/olm names.
	catalog = "ghcr.io/memcached-operator/memcached-operator-catalog:latest"
	// shards of the sample.
	shards = 3
	// perShard is how many items each shard gets.
	perShard = 10_000
	// warm is the least share of its items that a shard keeps over a restart.
	warm   = 0.99
	within = 2 * time.Minute
)

// demo is the story's state.
type demo struct {
	*teller
	*cluster.Cluster
	key  client.ObjectKey
	sets []*items.Set // by ordinal
}

func run(ctx context.Context, tell *teller) error {
	c, err := cluster.Connect()
	if err != nil {
		return err
	}
	d := &demo{teller: tell, Cluster: c}
	for _, chapter := range []func(context.Context) error{
		d.operator, d.create, d.fill, d.scale, d.deletePod, d.restart, d.upgrade, d.backup, d.end,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// operator installs the operator: by OLM where that can be had, which is the local
// cluster.
func (d *demo) operator(ctx context.Context) error {
	install := d.byDeploy
	if os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != "" {
		install = d.byOLM
	}
	if err := install(ctx); err != nil {
		return err
	}
	version, err := d.DefaultVersion(ctx)
	if err != nil {
		return err
	}
	d.result("it runs in namespace %s; memcached is %s unless a Memcached says otherwise", cluster.OperatorNamespace, version)
	return nil
}

func (d *demo) byDeploy(ctx context.Context) error {
	d.chapter("The operator")
	d.command("make deploy")
	return d.OperatorReady(ctx)
}

// byOLM installs the operator from a catalog of the one release in work. What an
// earlier demo or "make deploy" installed is removed before.
func (d *demo) byOLM(ctx context.Context) error {
	d.chapter("The operator, from a catalog, by the Operator Lifecycle Manager (OLM)")
	o, err := olm.On(d.Cluster, cluster.OperatorNamespace)
	if err != nil {
		return err
	}
	if image, err := d.OperatorImage(ctx); err != nil {
		return err
	} else if image != "" {
		if err := errors.Join(o.Remove(ctx), d.Uninstall(ctx)); err != nil {
			return err
		}
		d.result("the operator that was installed before is removed")
	}
	scratch, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	release, err := olm.InWork(ctx, scratch, os.Getenv("IMG"))
	if err != nil {
		return err
	}
	if err := olm.LoadCatalog(ctx, scratch, catalog, release); err != nil {
		return err
	}
	began := time.Now()
	if err := d.kubectl(ctx, "apply -k %s", subscription); err != nil {
		return err
	}
	if err := o.Succeeded(ctx, release, within); err != nil {
		return err
	}
	d.good("%s is Succeeded after %.1f s", release.CSV(), time.Since(began).Seconds())
	return nil
}

// create applies the sample. One that an earlier demo left is deleted first, so
// that what is told is of new shards.
func (d *demo) create(ctx context.Context) error {
	o, err := d.sample()
	if err != nil {
		return err
	}
	d.key = client.ObjectKeyFromObject(o)
	switch earlier, err := d.deleteMemcached(ctx, o.DeepCopy()); {
	case err != nil:
		return err
	case earlier:
		d.result("Memcached %s of an earlier demo is deleted", d.key.Name)
	}

	d.chapter(fmt.Sprintf("A Memcached of %d shards", shards))
	d.command("kubectl apply -f %s", sample)
	began := time.Now()
	if err := d.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", sample, err)
	}
	m, err := d.Await(ctx, d.key, within, "available", cluster.Available)
	if err != nil {
		return err
	}
	if m.Status.Ready != fmt.Sprintf("%d/%d", shards, shards) {
		return fmt.Errorf("%s shards serve, the sample asks for %d", m.Status.Ready, shards)
	}
	d.good("available after %.1f s: memcached %s in pods %v", time.Since(began).Seconds(), m.Status.Version, m.Status.Nodes)
	d.result("clients in the cluster use the addresses %v,", m.Status.Servers)
	d.result("which stay whichever pod holds the shard")
	return nil
}

// deleteMemcached deletes the Memcached if there is one, and waits until its pods are
// gone: while they drain they answer at the same names.
func (d *demo) deleteMemcached(ctx context.Context, o client.Object) (was bool, err error) {
	err = d.Delete(ctx, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("deleting the Memcached: %w", err)
	}
	err = cluster.Eventually(ctx, within, "the end of its pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := d.List(ctx, &pods, client.InNamespace(d.key.Namespace), client.MatchingLabels{v1alpha1.LabelInstance: d.key.Name}); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d are there", n)
		}
		return nil
	})
	return true, err
}

func (d *demo) sample() (*unstructured.Unstructured, error) {
	root, err := cluster.Root()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(root, sample))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	objects, err := cluster.Objects(file)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("%s holds %d objects, the demo is of one", sample, len(objects))
	}
	objects[0].SetNamespace(namespace)
	return objects[0], nil
}

func (d *demo) fill(ctx context.Context) error {
	d.chapter("A client writes and reads")
	began := time.Now()
	if err := d.connect(ctx); err != nil {
		return err
	}
	count, err := d.write()
	if err != nil {
		return err
	}
	d.good("%d items written through the three Services and read back in %.1f s", count, time.Since(began).Seconds())
	return nil
}

// connect has the client know the shards, once they answer.
func (d *demo) connect(ctx context.Context) error {
	addresses, err := d.Addresses(ctx, d.key, shards)
	if err != nil {
		return err
	}
	d.sets = nil
	for ordinal, address := range addresses {
		// the node's proxy learns of a pod a moment after it is ready
		err := cluster.Eventually(ctx, within, "answers at "+address, func(ctx context.Context) error { return probe.Ask(ctx, address) })
		if err != nil {
			return err
		}
		d.sets = append(d.sets, items.New(cluster.ShardName(d.key.Name, ordinal), perShard, address))
	}
	return nil
}

// write writes all items and returns how many there are.
func (d *demo) write() (int, error) {
	for ordinal, set := range d.sets {
		if err := set.Write(); err != nil {
			return 0, fmt.Errorf("writing to shard %d: %w", ordinal, err)
		}
	}
	return d.kept(1, 0, 1, 2)
}

// kept counts the items of some shards, and is an error unless each holds at
// least that share of its own.
func (d *demo) kept(share float64, ordinals ...int) (int, error) {
	sum := 0
	for _, ordinal := range ordinals {
		n, err := d.sets[ordinal].Keep(share)
		if err != nil {
			return sum, fmt.Errorf("shard %d: %w", ordinal, err)
		}
		sum += n
	}
	return sum, nil
}

func (d *demo) scale(ctx context.Context) error {
	d.chapter("Scale out and in")
	before, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	for _, size := range []int{5, shards} {
		d.command("kubectl scale memcached %s --replicas=%d", d.key.Name, size)
		began := time.Now()
		m, err := d.Memcached(ctx, d.key)
		if err != nil {
			return err
		}
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size)
		if err := d.SubResource("scale").Patch(ctx, m, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("scaling to %d: %w", size, err)
		}
		m, err = d.Await(ctx, d.key, within, "scaled", func(m *v1alpha1.Memcached) error {
			if int(m.Status.Size) != size {
				return fmt.Errorf("%d shards are there", m.Status.Size)
			}
			return cluster.Available(m)
		})
		if err != nil {
			return err
		}
		d.result("%s shards serve after %.1f s", m.Status.Ready, time.Since(began).Seconds())
	}
	after, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	for ordinal := range shards {
		name := cluster.ShardName(d.key.Name, ordinal)
		if before[name].UID != after[name].UID {
			return fmt.Errorf("shard %s was to be left alone and has another pod", name)
		}
	}
	count, err := d.kept(1, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("shards 0 to 2 are in the same pods, with all of their %d items", count)
	return nil
}

func (d *demo) deletePod(ctx context.Context) error {
	const ordinal = 1
	d.chapter("A pod is deleted while clients connect")
	pods, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	shard := cluster.ShardName(d.key.Name, ordinal)
	pod := pods[shard]
	address, err := d.Address(ctx, d.key.Namespace, shard)
	if err != nil {
		return err
	}
	connections := probe.Start(address)
	defer connections.Stop()
	d.result("a new connection to shard %d every %s", ordinal, probe.Every)
	d.command("kubectl delete pod %s", pod.Name)
	began := time.Now()
	if err := d.Delete(ctx, &pod); err != nil {
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	var now v1alpha1.ShardStatus
	_, err = d.Await(ctx, d.key, within, "shard in another pod", func(m *v1alpha1.Memcached) error {
		if now, err = cluster.Shard(m, ordinal); err != nil {
			return err
		}
		if now.Pod == pod.Name {
			return fmt.Errorf("it is still in pod %s", pod.Name)
		}
		return cluster.Available(m)
	})
	if err != nil {
		return err
	}
	d.result("pod %s serves in its place after %.1f s", now.Pod, time.Since(began).Seconds())
	err = cluster.Eventually(ctx, within, "the deleted pod's end", func(ctx context.Context) error {
		err := d.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
		if err == nil {
			return fmt.Errorf("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return err
	}
	report := connections.Stop()
	if len(report.Failures) > 0 || report.Connections == 0 {
		return fmt.Errorf("connections failed while the pod was replaced: %s", report)
	}
	d.good("%d of %d connections failed", len(report.Failures), report.Connections)
	if now.Start != v1alpha1.StartCold || now.Items != 0 {
		return fmt.Errorf("the status tells a new pod to have started %q with %d items", now.Start, now.Items)
	}
	if err := d.HasEvent(ctx, d.key, v1alpha1.EventShardStartedEmpty, shard); err != nil {
		return err
	}
	d.result("a new pod is an empty shard, and the operator says so: event %s, status.shards[%d].start %s", v1alpha1.EventShardStartedEmpty, ordinal, now.Start)
	return nil
}

func (d *demo) restart(ctx context.Context) error {
	const ordinal = 0
	d.chapter("memcached is restarted in place, and keeps its items")
	m, err := d.Memcached(ctx, d.key)
	if err != nil {
		return err
	}
	shard, err := cluster.Shard(m, ordinal)
	if err != nil {
		return err
	}
	token := time.Now().UTC().Format("20060102T150405")
	d.command("kubectl annotate pod %s --overwrite %s=%s", shard.Pod, v1alpha1.AnnotationRestart, token)
	began := time.Now()
	after, err := d.Restart(ctx, d.key, ordinal, token, within)
	if err != nil {
		return err
	}
	if after.Pod != shard.Pod || after.Start != v1alpha1.StartWarm {
		return fmt.Errorf("after the restart shard %s is in pod %s and started %q, not warm in pod %s", shard.Name, after.Pod, after.Start, shard.Pod)
	}
	d.result("restarted after %.1f s: the status tells %d of %d items", time.Since(began).Seconds(), after.Items, after.ItemsBefore)
	count, err := d.kept(warm, ordinal)
	if err != nil {
		return err
	}
	d.good("the client reads %d of %d items", count, perShard)
	return nil
}

// end shows what a person sees, and how to go on.
func (d *demo) end(ctx context.Context) error {
	d.chapter("What there is now")
	for _, resources := range []string{"memcached", "pods,services -l app.kubernetes.io/instance=" + d.key.Name} {
		if err := d.kubectl(ctx, "get -n %s %s", d.key.Namespace, resources); err != nil {
			return err
		}
	}
	d.chapter("Go on")
	d.say(fmt.Sprintf(`  kubectl describe memcached %[1]s        conditions, shards and events
  kubectl explain memcached.spec                     every field, with its default
  kubectl delete memcached %[1]s          clean up: this Memcached
  kubectl delete mcr,mcb,pvc demo                    … its backup, with the volume
  make undeploy uninstall                            … the operator, and the kind Memcached`, d.key.Name))
	if os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != "" {
		d.say(`  make cluster-down                                  … the local cluster
For kubectl in this shell: eval "$(make -s env)" && PATH="$PATH:$KUBEBUILDER_ASSETS"`)
	}
	return nil
}
