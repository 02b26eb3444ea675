package apiserver

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
)

func TestScaleSubresourceSetsTheSize(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 2")
	m := env.Converge("cache")
	to := func(replicas int) {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		env.Must(admin.SubResource("scale").Patch(env.Ctx, m, patch, client.FieldOwner("hpa")))
		m = env.Converge("cache")
	}
	if to(1); m.Status.Size != 2 || m.Status.LimitedSize.Size != 2 || !strings.HasPrefix(m.Status.LimitedSize.Message, "hpa set") {
		t.Errorf("size %d, status %+v", *m.Spec.Size, m.Status)
	}
	if to(3); *m.Spec.Size != 3 || m.Status.Size != 3 || m.Status.LimitedSize != nil || !strings.Contains(m.Status.Selector, v1beta1.LabelInstance+"=cache") {
		t.Errorf("size %d, status %+v", *m.Spec.Size, m.Status)
	}
}

// An autoscaler and a tool that applies a manifest would otherwise revert each other's size. Through /scale, it isn't decreased.
func TestSizeBelongsToTheOneThatSetsIt(t *testing.T) {
	env := newEnv(t)
	has := func(after string, want int32, scaledBy string) {
		t.Helper()
		m, by := env.Get("cache"), ""
		for _, e := range resources.ScaledBy(m) {
			by = cmp.Or(e.Manager, "unknown")
		}
		if *m.Spec.Size != want || by != scaledBy {
			t.Errorf("after %s, the size is %d by %q, not %d by %q: %+v", after, *m.Spec.Size, by, want, scaledBy, m.ManagedFields)
		}
	}
	applied := func(spec string, want int32, scaledBy string) {
		t.Helper()
		env.Must(admin.Apply(env.Ctx, client.ApplyConfigurationFromUnstructured(env.Object("Memcached", "cache", spec)), client.FieldOwner("flux"), client.ForceOwnership))
		has("the manifest "+spec, want, scaledBy)
	}
	patch := func(kind, body string) client.Patch {
		return client.RawPatch(types.PatchType("application/"+kind+"+json"), []byte(body))
	}
	kubectl := func(replicas int32, scaledBy string) {
		t.Helper()
		env.Must(admin.SubResource("scale").Patch(env.Ctx, env.Get("cache"), patch("merge-patch", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)), client.FieldOwner("kubectl")))
		has("kubectl scale", replicas, scaledBy)
	}
	autoscaler := func(replicas int32) {
		t.Helper()
		scale := &autoscalingv1.Scale{}
		env.Must(admin.SubResource("scale").Get(env.Ctx, env.Get("cache"), scale))
		scale.Spec.Replicas = replicas
		env.Must(admin.SubResource("scale").Update(env.Ctx, env.Get("cache"), client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")))
		has("an update of /scale", replicas, "kube-controller-manager")
	}
	edited := func(size, want int32, scaledBy string) {
		t.Helper()
		env.Must(admin.Patch(env.Ctx, env.Get("cache"), patch("merge-patch", fmt.Sprintf(`{"spec":{"size":%d}}`, size)), client.FieldOwner("kubectl-edit")))
		has("an edit", want, scaledBy)
	}
	applied("{}", 1, "unknown")
	kubectl(3, "unknown")
	applied("{memory: 128Mi}", 3, "unknown")
	edited(3, 3, "unknown")
	edited(4, 4, "")
	autoscaler(2)
	edited(2, 2, "kube-controller-manager")
	applied("{size: 2}", 2, "")
	kubectl(5, "kubectl")
	applied("{}", 5, "kubectl")
	applied("{size: 2}", 2, "")
	applied("{}", 1, "unknown")
}

func TestKubectlGetPrintsStatusColumns(t *testing.T) {
	env := newEnv(t)
	env.Create("cache", "size: 1")
	env.Converge("cache")
	env.RunPod("cache-0", "a", "10.0.0.1")
	env.Converge("cache")
	table := env.table()
	var names []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, c.Name)
		}
	}
	if got, want := strings.Join(names, " "), "Name Version Size Ready Updated Status Age"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	row := table.Rows[0].Cells
	// No agent reports a version here: the target is all that is known.
	if row[1] != nil || row[7] != "1.6.45" || row[2] != int64(1) || row[3] != int64(1) || row[4] != int64(1) || row[5] != "Running" {
		t.Errorf("row %v", row)
	}
}

func (env *testEnv) table() *metav1.Table {
	env.Helper()
	config := rest.CopyConfig(server.Admin)
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	tables, err := rest.UnversionedRESTClientFor(config)
	env.Must(err)
	table := &metav1.Table{}
	env.Must(tables.Get().Timeout(time.Minute).AbsPath("/apis/"+v1beta1.GroupVersion.String()+"/namespaces/"+env.Namespace+"/memcacheds").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(env.Ctx).Into(table))
	return table
}
