package demo

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

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/test/internal/cluster"
	"github.com/memcached-operator/memcached-operator/test/internal/inpod"
	"github.com/memcached-operator/memcached-operator/test/internal/items"
	"github.com/memcached-operator/memcached-operator/test/internal/olm"
	"github.com/memcached-operator/memcached-operator/test/internal/probe"
)

const (
	sample    = "config/samples/cache_v1beta1_memcached.yaml"
	namespace = "default"
	// subscription is how a user installs the operator with OLM.
	subscription = "config/samples/olm"
	// catalog is the image in subscription.
	catalog = "ghcr.io/memcached-operator/memcached-operator-catalog:latest"
	// shards of the sample.
	shards   = 3
	perShard = 10_000 // items
	// minWarm is the share of its items that a shard has to keep over a restart.
	minWarm = 0.99
)

type demo struct {
	*printer
	*cluster.Cluster
	key  client.ObjectKey
	sets []*items.Set // by ordinal
}

func newDemo(p *printer) (*demo, error) {
	c, err := cluster.Connect()
	if err != nil {
		return nil, err
	}
	d := &demo{printer: p, Cluster: c}
	o, err := d.sample()
	if err != nil {
		return nil, err
	}
	d.key = client.ObjectKeyFromObject(o)
	return d, nil
}

// onHost runs the demo, with its client in a pod.
func onHost(ctx context.Context, p *printer) error {
	d, err := newDemo(p)
	if err != nil {
		return err
	}
	if err := d.install(ctx); err != nil {
		return err
	}
	program := inpod.Program{
		Image:       os.Getenv("DEMO_IMAGE"),
		Command:     []string{"/bench", "demo", clientCommand, p.began.Format(time.RFC3339Nano)},
		Environment: map[string]string{},
		Output:      p.to,
	}
	if p.color {
		program.Environment[colorVariable] = "1"
	}
	if err := inpod.Run(ctx, d.Cluster, program); err != nil {
		return err
	}
	return d.end(ctx)
}

// inPod runs the chapters with a client.
func inPod(ctx context.Context, p *printer) error {
	d, err := newDemo(p)
	if err != nil {
		return err
	}
	for _, chapter := range []func(context.Context) error{d.create, d.fill, d.scale, d.deletePod, d.restart, d.upgrade, d.backup} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// install installs the operator, on the local cluster with OLM.
func (d *demo) install(ctx context.Context) error {
	if os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != "" {
		if err := d.installWithOLM(ctx); err != nil {
			return err
		}
	} else {
		d.chapter("Install the operator")
		d.command("make deploy")
		if err := d.OperatorReady(ctx); err != nil {
			return err
		}
	}
	version, err := d.DefaultVersion(ctx)
	if err != nil {
		return err
	}
	d.result("it runs in namespace %s, and its default version of memcached is %s", cluster.OperatorNamespace, version)
	return nil
}

// installWithOLM installs the operator from a catalog of the unreleased version. It removes an installed operator first.
func (d *demo) installWithOLM(ctx context.Context) error {
	d.chapter("Install the operator from a catalog with the Operator Lifecycle Manager (OLM)")
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
		d.result("removed the operator that was installed before")
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
	if err := o.Succeeded(ctx, release); err != nil {
		return err
	}
	d.good("%s is Succeeded after %.1f s", release.CSV(), time.Since(began).Seconds())
	return nil
}

// create applies the sample after it has deleted that of an earlier demo.
func (d *demo) create(ctx context.Context) error {
	o, err := d.sample()
	if err != nil {
		return err
	}
	switch existed, err := d.deleteMemcached(ctx, o.DeepCopy()); {
	case err != nil:
		return err
	case existed:
		d.result("deleted Memcached %s of an earlier demo", d.key.Name)
	}
	d.chapter(fmt.Sprintf("Create a Memcached with %d shards", shards))
	d.command("kubectl apply -f %s", sample)
	if err := d.AdmitClients(ctx, namespace); err != nil {
		return err
	}
	began := time.Now()
	m, err := d.applySample(ctx, o)
	if err != nil {
		return err
	}
	if m.Status.ReadyShards != shards {
		return fmt.Errorf("%d shards are ready, the sample has %d", m.Status.ReadyShards, shards)
	}
	d.good("available after %.1f s: memcached %s in pods %v", time.Since(began).Seconds(), m.Status.Version, m.Status.Nodes)
	d.result("clients in the cluster use the stable addresses %v", m.Status.Servers)
	return nil
}

func (d *demo) applySample(ctx context.Context, o *unstructured.Unstructured) (*v1beta1.Memcached, error) {
	if err := d.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying %s: %w", sample, err)
	}
	return d.Await(ctx, d.key, "available", cluster.Available)
}

// deleteMemcached deletes the Memcached, if it exists, and waits until its pods no longer exist: they answer at the same
// names until then.
func (d *demo) deleteMemcached(ctx context.Context, o client.Object) (existed bool, err error) {
	err = d.Delete(ctx, o)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("deleting the Memcached: %w", err)
	}
	err = cluster.Eventually(ctx, "deletion of its pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := d.List(ctx, &pods, client.InNamespace(d.key.Namespace), client.MatchingLabels{v1beta1.LabelInstance: d.key.Name}); err != nil {
			return err
		}
		if n := len(pods.Items); n > 0 {
			return fmt.Errorf("%d pods are left", n)
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
		return nil, fmt.Errorf("%s has %d objects, want 1", sample, len(objects))
	}
	objects[0].SetNamespace(namespace)
	return objects[0], nil
}

func (d *demo) fill(ctx context.Context) error {
	d.chapter("Write and read items")
	began := time.Now()
	if err := d.connect(ctx); err != nil {
		return err
	}
	count, err := d.write()
	if err != nil {
		return err
	}
	d.good("a client wrote %d items through the three Services and read them back in %.1f s", count, time.Since(began).Seconds())
	return nil
}

// connect creates the client's connections to the shards.
func (d *demo) connect(ctx context.Context) error {
	addresses, err := d.AnsweringAddresses(ctx, d.key, shards)
	d.sets = nil
	for ordinal, address := range addresses {
		d.sets = append(d.sets, items.New(cluster.ShardName(d.key.Name, ordinal), perShard, address))
	}
	return err
}

// write writes all items and returns their number.
func (d *demo) write() (int, error) {
	for ordinal, set := range d.sets {
		if err := set.Write(); err != nil {
			return 0, fmt.Errorf("writing to shard %d: %w", ordinal, err)
		}
	}
	return d.count(1, 0, 1, 2)
}

// count counts the items of some shards. It returns an error unless each shard has a share of its items.
func (d *demo) count(share float64, ordinals ...int) (int, error) {
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
		patch := fmt.Appendf(nil, `{"spec":{"size":%d}}`, size)
		d.command("kubectl patch memcached %s --type=merge --patch='%s'", d.key.Name, patch)
		began := time.Now()
		m, err := d.Memcached(ctx, d.key)
		if err != nil {
			return err
		}
		if err := d.Patch(ctx, m, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Errorf("scaling to %d: %w", size, err)
		}
		m, err = d.Await(ctx, d.key, "scaled", func(m *v1beta1.Memcached) error {
			if int(m.Status.Size) != size {
				return fmt.Errorf("it has %d shards", m.Status.Size)
			}
			return cluster.Available(m)
		})
		if err != nil {
			return err
		}
		d.result("%d shards are ready after %.1f s", m.Status.ReadyShards, time.Since(began).Seconds())
	}
	if err := d.samePods(ctx, before); err != nil {
		return err
	}
	count, err := d.count(1, 0, 1, 2)
	if err != nil {
		return err
	}
	d.good("shards 0 to 2 are in the same pods and have all of their %d items", count)
	return nil
}

// samePods returns an error unless the first shards are in the same pods as before.
func (d *demo) samePods(ctx context.Context, before map[string]corev1.Pod) error {
	now, err := d.Pods(ctx, d.key)
	if err != nil {
		return err
	}
	for ordinal := range shards {
		if shard := cluster.ShardName(d.key.Name, ordinal); before[shard].UID != now[shard].UID {
			return fmt.Errorf("shard %s must keep its pod, but has another one", shard)
		}
	}
	return nil
}

func (d *demo) deletePod(ctx context.Context) error {
	const ordinal = 1
	d.chapter("Delete a pod while clients connect")
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
	d.result("a client opens a new connection to shard %d every %s", ordinal, probe.Every)
	d.command("kubectl delete pod %s", pod.Name)
	began := time.Now()
	if err := d.Delete(ctx, &pod); err != nil {
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	var now v1beta1.ShardStatus
	_, err = d.Await(ctx, d.key, "shard in another pod", func(m *v1beta1.Memcached) error {
		if now, err = cluster.Shard(m, ordinal); err != nil {
			return err
		}
		if now.PodName == pod.Name {
			return fmt.Errorf("it is still in pod %s", pod.Name)
		}
		return cluster.Available(m)
	})
	if err != nil {
		return err
	}
	d.result("pod %s replaces it after %.1f s", now.PodName, time.Since(began).Seconds())
	if err := d.Gone(ctx, &pod); err != nil {
		return err
	}
	report := connections.Stop()
	if now.StartResult != v1beta1.StartHandedOver || now.Items == 0 || now.Items < now.ItemsBefore*999/1000 {
		return fmt.Errorf("the status reports that the new pod started %q with %d of %d items", now.StartResult, now.Items, now.ItemsBefore)
	}
	if err := d.HasEvent(ctx, d.key, v1beta1.EventShardHandedOver, shard); err != nil {
		return err
	}
	d.good("the new pod received %d of %d items from the old one", now.Items, now.ItemsBefore)
	d.result("no pod responded for %.1f s, in which %d of %d connections failed", float64(now.GapMilliseconds)/1000, len(report.Failures), report.Connections)
	return nil
}

func (d *demo) restart(ctx context.Context) error {
	const ordinal = 0
	d.chapter("Restart memcached in place")
	m, err := d.Memcached(ctx, d.key)
	if err != nil {
		return err
	}
	shard, err := cluster.Shard(m, ordinal)
	if err != nil {
		return err
	}
	token := time.Now().UTC().Format("20060102T150405")
	d.command("kubectl annotate pod %s --overwrite %s=%s", shard.PodName, v1beta1.AnnotationRestart, token)
	began := time.Now()
	after, err := d.Restart(ctx, d.key, ordinal, token)
	if err != nil {
		return err
	}
	if after.PodName != shard.PodName || after.StartResult != v1beta1.StartWarm {
		return fmt.Errorf("after the restart shard %s is in pod %s and started %q, want a warm start in pod %s", shard.Name, after.PodName, after.StartResult, shard.PodName)
	}
	d.result("restarted after %.1f s: the status reports %d of %d items", time.Since(began).Seconds(), after.Items, after.ItemsBefore)
	count, err := d.count(minWarm, ordinal)
	if err != nil {
		return err
	}
	d.good("the client reads %d of %d items", count, perShard)
	return nil
}

// end shows the objects and further commands.
func (d *demo) end(ctx context.Context) error {
	d.chapter("The objects")
	for _, resources := range []string{"memcached", "pods,services -l app.kubernetes.io/instance=" + d.key.Name} {
		if err := d.kubectl(ctx, "get -n %s %s", d.key.Namespace, resources); err != nil {
			return err
		}
	}
	d.chapter("Next steps")
	d.say(fmt.Sprintf(`  kubectl describe memcached %[1]s        show conditions, shards and events
  kubectl explain memcached.spec                     show every field with its default
  kubectl delete memcached %[1]s          delete this Memcached
  kubectl delete mcr,mcb,pvc demo                    delete its backup with the volume
  make undeploy uninstall                            remove the operator and its CRDs`, d.key.Name))
	if os.Getenv("MEMCACHED_OPERATOR_CLUSTER") != "" {
		d.say(`  make cluster-down                                  stop the local cluster
To use kubectl in this shell: eval "$(make -s env)" && PATH="$PATH:$KUBEBUILDER_ASSETS"`)
	}
	return nil
}
