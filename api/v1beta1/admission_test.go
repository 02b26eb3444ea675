package v1beta1_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/schemaedit"
)

func schemaOf(t *testing.T, plural string) *schemaedit.Schema {
	t.Helper()
	schema, err := schemaedit.Load("../../config/crd/bases/" + v1beta1.GroupVersion.Group + "_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// admit returns what the API server stores of a new object. TestAdmitAgreesWithTheAPIServer compares both.
func admit(t *testing.T, schema *schemaedit.Schema, kind, name, spec string) (*unstructured.Unstructured, error) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	o.SetName(name)
	return schema.Admit(t.Context(), o, nil)
}

// The API server accepts a spec where no message is given.
func TestAdmission(t *testing.T) {
	everyField, err := os.ReadFile("../../controllers/memcached/testdata/every_field.yaml")
	if err != nil {
		t.Fatal(err)
	}
	schema := schemaOf(t, "memcacheds")
	for name, c := range map[string]struct{ name, spec, message string }{
		"an empty spec":                                   {"cache", "{}", ""},
		"all fields":                                      {"cache", string(everyField), ""},
		"size 0":                                          {"cache", "size: 0", ""},
		"a negative size":                                 {"cache", "size: -1", "should be greater than or equal to 0"},
		"a huge size":                                     {"cache", "size: 129", "should be less than or equal to 128"},
		"a size that is not a number":                     {"cache", "size: three", "must be of type integer"},
		"a version with a v":                              {"cache", "version: v1.6.45", "version must be three numbers such as 1.6.45"},
		"a version of two numbers":                        {"cache", `version: "1.6"`, "version must be three numbers"},
		"a version that is a variant":                     {"cache", "version: 1.6.45-alpine", "put an image tag of another form into pod.image"},
		"a version with a newline":                        {"cache", `version: "1.6.45\n"`, "version must be three numbers"},
		"a version that is a tag":                         {"cache", "version: latest", "version must be three numbers"},
		"an image with a space":                           {"cache", `pod: {image: "memcached :1"}`, "image must be an image reference"},
		"an image from a registry with a port":            {"cache", "pod: {image: registry.example.com:5000/memcached}", ""},
		"too little memory":                               {"cache", "memory: 63Mi", "memory must be at least 64Mi"},
		"negative memory":                                 {"cache", "memory: -64Mi", "memory must be at least 64Mi"},
		"memory in milli units":                           {"cache", "memory: 64m", "memory must be at least 64Mi"},
		"memory without a unit":                           {"cache", "memory: 67108864", ""},
		"memory with a fraction":                          {"cache", "memory: 1.5Gi", ""},
		"too much memory":                                 {"cache", "memory: 2Ti", "use more shards"},
		"memory that is not a quantity":                   {"cache", "memory: lots", "spec.memory"},
		"too few connections":                             {"cache", "config: {maxConnections: 255}", "should be greater than or equal to 256"},
		"no threads":                                      {"cache", "config: {threads: 0}", "should be greater than or equal to 1"},
		"too many threads":                                {"cache", "config: {threads: 65}", "should be less than or equal to 64"},
		"an item larger than half the memory":             {"cache", "{memory: 64Mi, config: {maxItemSize: 33Mi}}", "maxItemSize must be at most half of memory"},
		"a maxItemSize of 1":                              {"cache", "config: {maxItemSize: 1}", "maxItemSize must be a multiple of 512Ki"},
		"a maxItemSize that is not a multiple of a chunk": {"cache", "config: {maxItemSize: 1M}", "maxItemSize must be a multiple of 512Ki"},
		"a maxItemSize of three chunks":                   {"cache", "config: {maxItemSize: 1.5Mi}", ""},
		"a memory limit equal to memory":                  {"cache", "{memory: 1Gi, resources: {limits: {memory: 1Gi}}}", "resources.limits.memory is too small for the cache"},
		"a memory limit just too small":                   {"cache", "{memory: 100Mi, config: {maxConnections: 1024}, resources: {limits: {memory: 197Mi}}}", "too small for the cache"},
		"a memory limit just large enough":                {"cache", "{memory: 100Mi, config: {maxConnections: 1024}, resources: {limits: {memory: 198Mi}}}", ""},
		"only a CPU limit":                                {"cache", "resources: {limits: {cpu: 1}}", ""},
		"a limit that is not a quantity":                  {"cache", `resources: {limits: {cpu: "1e1.5"}}`, "each of resources.limits must be a quantity"},
		"a request that is not a quantity":                {"cache", `resources: {requests: {example.com/fast: "1e1.5"}}`, "each of resources.requests must be a quantity"},
		"quantities of all forms":                         {"cache", `resources: {requests: {cpu: "0.5", memory: "2e8", ephemeral-storage: 1.5Gi}}`, ""},
		"allowed clients with mode Open":                  {"cache", "access: {networkPolicy: {mode: Open, allowedClients: [{podSelector: {}}]}}", "networkPolicy.allowedClients requires mode Restricted"},
		"allowed clients of a default mode":               {"cache", "access: {networkPolicy: {allowedClients: [{podSelector: {}}, {namespaceSelector: {}}, {ipBlock: {cidr: 10.0.0.0/8}}]}}", ""},
		"an empty allowed client":                         {"cache", "access: {networkPolicy: {allowedClients: [{}]}}", "must be either an ipBlock, or a podSelector"},
		"an allowed client with two forms":                {"cache", "access: {networkPolicy: {allowedClients: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}}", "must be either an ipBlock, or a podSelector"},
		"no allowed client":                               {"cache", "access: {networkPolicy: {allowedClients: []}}", "should have at least 1 items"},
		"a source range of a load balancer":               {"cache", "access: {external: {mode: LoadBalancer, sourceRanges: [192.0.2.0/24]}}", ""},
		"a source range without its length":               {"cache", "access: {external: {sourceRanges: [192.0.2.1]}}", "should match"},
		"a Service with a node port":                      {"cache", "access: {external: {mode: NodePort}}", "Unsupported value"},
		"an unknown mode":                                 {"cache", "access: {networkPolicy: {mode: Closed}}", "Unsupported value"},
		"a final backup without a store":                  {"cache", "deletionPolicy: Backup", "deletionPolicy Backup requires backup.final: set backup.final.store to where the backup goes"},
		"a final backup":                                  {"cache", "{deletionPolicy: Backup, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}", ""},
		"deletion without a backup":                       {"cache", "{deletionPolicy: Delete, backup: {final: {store: {persistentVolumeClaim: {claimName: store}}}}}", ""},
		"updates by a handover":                           {"cache", "updateStrategy: {type: Handover}", ""},
		"updates by a handover in mode Available":         {"cache", "{updateStrategy: {type: Handover, handover: {mode: Available}}}", ""},
		"updates in place without a handover":             {"cache", "{updateStrategy: {minPeriodSeconds: 5, handover: {mode: Disabled}}}", ""},
		"two options in one item":                         {"cache", `config: {extraArgs: ["-v -v"]}`, "each extraArgs item must be one word"},
		"a value before any option":                       {"cache", `config: {extraArgs: ["64"]}`, "must begin with an option"},
		"two words in one item":                           {"cache", `config: {extraArgs: ["-o", "a b"]}`, "without spaces"},
		"an empty item":                                   {"cache", `config: {extraArgs: [""]}`, "must begin with an option"},
		"an empty second item":                            {"cache", `config: {extraArgs: ["-v", ""]}`, "without spaces"},
		"known options":                                   {"cache", `config: {extraArgs: ["-vv", "-f", "1.1", "-n96", "-o", "hash_algorithm=murmur3,no_lru_crawler", "--slab-growth-factor=1.2", "-X", "-C"]}`, ""},
		"a label of the operator":                         {"cache", "pod: {metadata: {labels: {app.kubernetes.io/instance: other}}}", "labels must not contain labels of app.kubernetes.io/"},
		"a user that is root":                             {"cache", "pod: {securityContext: {runAsUser: 0}}", "greater than or equal to 1"},
		"no seccomp profile":                              {"cache", "pod: {securityContext: {seccompProfile: {type: Unconfined}}}", "securityContext.seccompProfile must have type RuntimeDefault"},
		"a seccomp profile without a name":                {"cache", "pod: {securityContext: {seccompProfile: {type: Localhost}}}", "securityContext.seccompProfile must have type RuntimeDefault"},
		"no AppArmor profile":                             {"cache", "pod: {securityContext: {appArmorProfile: {type: Unconfined}}}", "securityContext.appArmorProfile must have type RuntimeDefault"},
		"a privileged SELinux type":                       {"cache", "pod: {securityContext: {seLinuxOptions: {type: spc_t}}}", "securityContext.seLinuxOptions can have a level"},
		"a SELinux user":                                  {"cache", "pod: {securityContext: {seLinuxOptions: {user: root}}}", "securityContext.seLinuxOptions can have a level"},
		"a label of a shard":                              {"cache", "pod: {metadata: {labels: {cache.memcached-operator.io/shard: \"7\"}}}", "labels must not contain labels of"},
		"long annotations":                                {"cache", "pod: {metadata: {annotations: {a: " + strings.Repeat("x", 4095) + ", b: " + strings.Repeat("x", 4095) + "}}}", ""},
		"annotations that are too long":                   {"cache", "pod: {metadata: {annotations: {a: " + strings.Repeat("x", 4095) + ", b: " + strings.Repeat("x", 4096) + "}}}", "annotations must have at most 8192 characters in total"},
		"a label that is too long":                        {"cache", "pod: {metadata: {labels: {a: " + strings.Repeat("x", 64) + "}}}", "values of at most 63 characters"},
		"an annotation of the operator":                   {"cache", "pod: {metadata: {annotations: {cache.memcached-operator.io/restart: now}}}", "annotations must not contain annotations of cache.memcached-operator.io/"},
		"a name that starts with a digit":                 {"1cache", "{}", "start with a letter"},
		"a name with a dot":                               {"my.cache", "{}", "lower case letters, digits and '-'"},
		"a name of the maximum length":                    {strings.Repeat("a", 52), "{}", ""},
		"a name that is too long":                         {strings.Repeat("a", 53), "{}", "at most 52 characters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := admit(t, schema, "Memcached", c.name, c.spec)
			switch {
			case c.message == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case c.message != "" && (err == nil || !strings.Contains(err.Error(), c.message)):
				t.Errorf("error %v, want one with %q", err, c.message)
			}
		})
	}
}

func TestDefaultsOfAnEmptySpec(t *testing.T) {
	var m v1beta1.Memcached
	o, err := admit(t, schemaOf(t, "memcacheds"), "Memcached", "cache", "{}")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &m)
	}
	if err != nil || *m.Spec.Size != 1 || m.Spec.Memory.String() != "64Mi" || *m.Spec.Config.MaxConnections != 1024 || *m.Spec.Config.Threads != 4 || m.Spec.Config.MaxItemSize.String() != "1Mi" {
		t.Errorf("defaults %+v, %v", m.Spec, err)
	}
}

func TestInvalidBackupsAreRejected(t *testing.T) {
	schema := schemaOf(t, "memcachedbackups")
	for name, spec := range map[string]string{
		"no-store":                      "{memcachedRef: {name: cache}}",
		"two-stores":                    "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}, s3: {bucket: b, credentialsSecretName: c}}}",
		"outside-the-volume":            "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots, subPath: ../other}}}",
		"a-path-as-a-name":              "{memcachedRef: {name: a/b}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-path-as-a-claim":             "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: a/b}}}",
		"a-path-as-a-secret":            "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: a/b}}}",
		"a-password":                    "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: c, endpoint: 'https://user:secret@s3.example'}}}",
		"no-credentials":                "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb}}}",
		"two-credentials":               "{memcachedRef: {name: cache}, store: {s3: {bucket: bbb, credentialsSecretName: c, serviceAccountName: d}}}",
		"not-a-quantity":                "{memcachedRef: {name: cache}, resources: {limits: {memory: 1e1.5}}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-rate-that-is-not-a-quantity": "{memcachedRef: {name: cache}, rateLimit: {bytesPerSecond: 1e1.5}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-negative-rate":               "{memcachedRef: {name: cache}, rateLimit: {bytesPerSecond: -1}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-rate-too-high":               "{memcachedRef: {name: cache}, rateLimit: {bytesPerSecond: 2Ti}, store: {persistentVolumeClaim: {claimName: snapshots}}}",
		"a-negative-deadline":           "{memcachedRef: {name: cache}, deadlineSeconds: -3600, store: {persistentVolumeClaim: {claimName: snapshots}}}",
	} {
		if _, err := admit(t, schema, "MemcachedBackup", "nightly", spec); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	const valid = "{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: snapshots}}}"
	stored, err := admit(t, schema, "MemcachedBackup", "nightly", valid)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for field := range reflect.TypeFor[v1beta1.MemcachedBackupSpec]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = true
	}
	changed := stored.DeepCopy()
	changed.SetLabels(map[string]string{"team": "search"})
	if _, err := schema.Admit(t.Context(), changed, stored); err != nil {
		t.Errorf("a label: %v", err)
	}
	// All fields but one are immutable, also those that are added.
	for field, value := range map[string]any{
		"memcachedRef": map[string]any{"name": "other"}, "rateLimit": map[string]any{"itemsPerSecond": int64(1)}, "deletionPolicy": "Delete",
		"store":     map[string]any{"persistentVolumeClaim": map[string]any{"claimName": "other"}},
		"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}, "deadlineSeconds": int64(60),
	} {
		changed := stored.DeepCopy()
		_ = unstructured.SetNestedField(changed.Object, value, "spec", field)
		_, err := schema.Admit(t.Context(), changed, stored)
		if accepted := err == nil; accepted != (field == "deletionPolicy") || !accepted && !strings.Contains(err.Error(), "runs once") {
			t.Errorf("another %s: %v", field, err)
		}
		delete(fields, field)
	}
	if len(fields) > 0 {
		t.Errorf("no value for %v", fields)
	}
}
