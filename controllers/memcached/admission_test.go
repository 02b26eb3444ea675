package memcached

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
)

// TestAdmission holds the rules that the API server itself answers, with the
// sentence that a person reads. An empty sentence means that it is taken.
func TestAdmission(t *testing.T) {
	w := newWorld(t)
	for reason, c := range map[string]struct{ name, spec, says string }{
		"an empty spec is three defaults away from running": {"cache", "{}", ""},
		"everything at once":                    {"cache", everything, ""},
		"a size of nothing":                     {"cache", "size: 0", ""},
		"a negative size":                       {"cache", "size: -1", "should be greater than or equal to 0"},
		"a huge size":                           {"cache", "size: 1001", "should be less than or equal to 1000"},
		"a size that is no number":              {"cache", "size: three", "must be of type integer"},
		"a version with a v":                    {"cache", "version: v1.6.45", "version must be three numbers such as 1.6.45"},
		"a version of two numbers":              {"cache", `version: "1.6"`, "version must be three numbers"},
		"a version that is a variant":           {"cache", "version: 1.6.45-alpine", "goes into image"},
		"a version with a newline":              {"cache", `version: "1.6.45\n"`, "version must be three numbers"},
		"an image with a space":                 {"cache", `image: "memcached :1"`, "image must be an image reference"},
		"an image from a registry with a port":  {"cache", "image: registry.example.com:5000/memcached", ""},
		"too little memory":                     {"cache", "memory: 63Mi", "memory must be at least 64Mi"},
		"negative memory":                       {"cache", "memory: -64Mi", "memory must be at least 64Mi"},
		"memory in thousandths":                 {"cache", "memory: 64m", "memory must be at least 64Mi"},
		"memory without a unit is bytes":        {"cache", "memory: 67108864", ""},
		"memory of one and a half":              {"cache", "memory: 1.5Gi", ""},
		"too much memory":                       {"cache", "memory: 2Ti", "use more shards"},
		"memory that is no quantity":            {"cache", "memory: lots", "spec.memory"},
		"too few connections":                   {"cache", "connections: 255", "should be greater than or equal to 256"},
		"no threads":                            {"cache", "threads: 0", "should be greater than or equal to 1"},
		"too many threads":                      {"cache", "threads: 65", "should be less than or equal to 64"},
		"an item larger than half the memory":   {"cache", "{memory: 64Mi, maxItemSize: 33Mi}", "maxItemSize must be at most half of memory"},
		"an item of nothing":                    {"cache", "maxItemSize: 1", "maxItemSize must be a multiple of 512Ki"},
		"an item of no whole chunks":            {"cache", "maxItemSize: 1M", "maxItemSize must be a multiple of 512Ki"},
		"an item of three chunks":               {"cache", "maxItemSize: 1.5Mi", ""},
		"a limit that the cache outgrows":       {"cache", "{memory: 1Gi, resources: {limits: {memory: 1Gi}}}", "resources.limits.memory is too small for the cache"},
		"a limit just too small":                {"cache", "{memory: 100Mi, connections: 1024, resources: {limits: {memory: 158Mi}}}", "too small for the cache"},
		"a limit just enough":                   {"cache", "{memory: 100Mi, connections: 1024, resources: {limits: {memory: 159Mi}}}", ""},
		"a processor limit alone":               {"cache", "resources: {limits: {cpu: 1}}", ""},
		"memory by an extra argument":           {"cache", `extraArgs: ["-m", "64"]`, "use spec.memory"},
		"memory in the argument's own word":     {"cache", `extraArgs: ["-m64"]`, "use spec.memory"},
		"memory by its long name":               {"cache", `extraArgs: ["--memory-limit=64"]`, "use spec.memory"},
		"memory by an abbreviation":             {"cache", `extraArgs: ["--memory-l=64"]`, "not known"},
		"memory behind another option":          {"cache", `extraArgs: ["-vm64"]`, "not known"},
		"a port":                                {"cache", `extraArgs: ["-p", "1"]`, "must not hold what the operator sets itself"},
		"the restartable cache":                 {"cache", `extraArgs: ["-e", "/tmp/x"]`, "must not hold what the operator sets itself"},
		"a shutdown command":                    {"cache", `extraArgs: ["-A"]`, "must not hold what the operator sets itself"},
		"the binary protocol alone":             {"cache", `extraArgs: ["-B", "binary"]`, "must not hold what the operator sets itself"},
		"external storage":                      {"cache", `extraArgs: ["-o", "ext_path=/x:1G"]`, "external storage"},
		"an option that does not exist":         {"cache", `extraArgs: ["-Q"]`, "not known"},
		"a value before any option":             {"cache", `extraArgs: ["64"]`, "must begin with an option"},
		"two words in one":                      {"cache", `extraArgs: ["-o", "a b"]`, "without spaces"},
		"an empty word":                         {"cache", `extraArgs: [""]`, "must begin with an option"},
		"an empty second word":                  {"cache", `extraArgs: ["-v", ""]`, "without spaces"},
		"arguments that are known":              {"cache", `extraArgs: ["-vv", "-f", "1.1", "-n96", "-o", "hash_algorithm=murmur3,no_lru_crawler", "--slab-growth-factor=1.2", "-X", "-C"]`, ""},
		"a label of the operator":               {"cache", "podLabels: {app.kubernetes.io/instance: other}", "podLabels must not hold"},
		"an annotation of the operator":         {"cache", "podAnnotations: {cache.memcached-operator.io/restart: now}", "podAnnotations must not hold"},
		"a field that does not exist":           {"cache", "replicas: 3", "unknown field"},
		"a name that starts with a digit":       {"1cache", "{}", "start with a letter"},
		"a name with a dot":                     {"my.cache", "{}", "lower case letters, digits and '-'"},
		"a name that is just short enough":      {strings.Repeat("a", 52), "{}", ""},
		"a name that leaves no room for shards": {strings.Repeat("a", 53), "{}", "at most 52 characters"},
	} {
		t.Run(reason, func(t *testing.T) {
			w.TB = t
			m, err := w.tryCreate(c.name, c.spec)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
			if err == nil {
				w.must(admin.Delete(w.ctx, m))
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	w := newWorld(t)
	m := w.create("cache", "{}")
	if *m.Spec.Size != 1 || m.Spec.Memory.String() != "64Mi" || *m.Spec.Connections != 1024 || *m.Spec.Threads != 4 || m.Spec.MaxItemSize.String() != "1Mi" {
		t.Errorf("defaults %+v", m.Spec)
	}
}

func TestTheScaleSubresourceScales(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 2")
	m := w.settle("cache")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))
	w.must(admin.SubResource("scale").Patch(w.ctx, m, patch))
	m = w.settle("cache")
	if *m.Spec.Size != 3 || m.Status.Size != 3 || !strings.Contains(m.Status.Selector, v1alpha1.LabelInstance+"=cache") {
		t.Errorf("size %d, status %+v", *m.Spec.Size, m.Status)
	}
}

// TestPrinterColumns asks the API server for what kubectl get prints.
func TestPrinterColumns(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.settle("cache")
	w.runPod("cache-0", "a", "10.0.0.1")
	w.settle("cache")
	table := w.table()
	var names []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, c.Name)
		}
	}
	if got, want := strings.Join(names, " "), "Name Version Ready Status Age"; got != want {
		t.Errorf("columns %q, want %q", got, want)
	}
	row := table.Rows[0].Cells
	if row[1] != "1.6.45" || row[2] != "1/1" || row[3] != "Running" {
		t.Errorf("row %v", row)
	}
}

func (w *world) table() *metav1.Table {
	w.Helper()
	table := &metav1.Table{}
	w.must(tables.Get().Timeout(time.Minute).AbsPath("/apis/"+v1alpha1.GroupVersion.String()+"/namespaces/"+w.namespace+"/memcacheds").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(w.ctx).Into(table))
	return table
}

// TestAMemcachedThatCannotBeReadHidesNoOther: the API server takes quantities that Go's
// own type does not.
func TestAMemcachedThatCannotBeReadHidesNoOther(t *testing.T) {
	w := newWorld(t)
	w.create("cache", "size: 1")
	w.create("strange", `{size: 1, resources: {limits: {cpu: "1e1.5"}}}`)
	var all v1alpha1.MemcachedList
	w.must(admin.List(w.ctx, &all, client.InNamespace(w.namespace)))
	if len(all.Items) != 2 {
		t.Errorf("%d Memcacheds are read", len(all.Items))
	}
	m := w.reconcile("strange")
	w.wantCondition(m, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonSpecUnreadable, "spec.resources", "nothing is changed")
	if len(m.Status.Shards) > 0 {
		t.Errorf("it has shards: %+v", m.Status.Shards)
	}
	if got := w.get("strange").Spec.Size; *got != 1 {
		t.Errorf("its size is read as %d", *got)
	}
}
