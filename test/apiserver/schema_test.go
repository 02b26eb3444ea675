package apiserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/simtest"
)

// rejections are Memcacheds that the API server rejects.
var rejections = map[string]string{
	"no spec":                                 `{}`,
	"a spec that is null":                     `spec: null`,
	"a string for a number":                   `spec: {size: three}`,
	"a fraction":                              `spec: {config: {threads: 1.5}}`,
	"below the minimum":                       `spec: {size: -1}`,
	"above the maximum":                       `spec: {config: {threads: 65}}`,
	"a number for a string":                   `spec: {pod: {image: 1}}`,
	"a string that is too long":               `spec: {version: 1.6.` + strings.Repeat("1", 33) + `}`,
	"a string that is too short":              `spec: {backup: {final: {store: {persistentVolumeClaim: {claimName: ""}}}}}`,
	"a value not in the enum":                 `spec: {deletionPolicy: Keep}`,
	"a pattern that does not match":           `spec: {updateStrategy: {maintenanceWindows: [{start: "24:00", durationSeconds: 60}]}}`,
	"an invalid quantity":                     `spec: {memory: lots}`,
	"a boolean for a quantity":                `spec: {memory: true}`,
	"a required field that is missing":        `spec: {access: {hashing: {serverNameTemplate: "{shard}"}}}`,
	"a list that is too long":                 `spec: {config: {extraArgs: [` + strings.Repeat("-v,", 33) + `]}}`,
	"the same item twice":                     `spec: {pod: {imagePullSecrets: [{name: a}, {name: a}]}}`,
	"the same item of a set twice":            `spec: {updateStrategy: {maintenanceWindows: [{start: "02:00", durationSeconds: 60, days: [Monday, Monday]}]}}`,
	"a list for a map":                        `spec: {pod: {metadata: {labels: [a]}}}`,
	"a rule of one field":                     `spec: {version: v1.6.45}`,
	"a rule of two fields":                    `spec: {memory: 64Mi, config: {maxItemSize: 33Mi}}`,
	"a rule of a field and a default":         `spec: {resources: {limits: {memory: 64Mi}}}`,
	"a rule of a list":                        `spec: {config: {extraArgs: ["64"]}}`,
	"a rule of a map":                         `spec: {pod: {metadata: {labels: {app.kubernetes.io/name: web}}}}`,
	"a rule of either or":                     `spec: {backup: {final: {store: {}}}}`,
	"a rule of a policy and a field":          `spec: {deletionPolicy: Backup}`,
	"a rule of the object":                    `{metadata: {name: 1cache}, spec: {}}`,
	"rules are not checked with other errors": `spec: {size: three, version: v1}`,
}

// acceptances are Memcacheds that the API server accepts, with defaults and without unknown fields.
var acceptances = map[string]string{
	"an empty spec":                 `spec: {}`,
	"a quantity as a number":        `spec: {memory: 67108864}`,
	"an option that fails later":    `spec: {config: {extraArgs: [-R, "0"]}}`,
	"values other than defaults":    `spec: {size: 0, memory: 67108864, config: {maxConnections: 256, threads: 1, maxItemSize: 512Ki}, backup: {final: {store: {persistentVolumeClaim: {claimName: backups}}, deadlineSeconds: 60, rateLimit: {itemsPerSecond: 0, bytesPerSecond: 0}}}, deletionPolicy: Backup, paused: false}`,
	"defaults of an object":         `spec: {backup: {refill: {mode: NewestBackup}}, updateStrategy: {hitRatioGate: {mode: Stop}, maintenanceWindows: [{start: "02:00", durationSeconds: 300}]}}`,
	"null":                          `spec: {size: null, version: null, pod: {metadata: null}}`,
	"unknown fields and map keys":   `spec: {replicas: 3, pod: {metadata: {labels: {replicas: "3"}}, imagePullSecrets: [{name: a, kind: Secret}]}}`,
	"a status and an unknown field": `{spec: {}, status: {phase: Running}, data: {}}`,
}

const backupSpec = `{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`

// admittedUpdates are objects before and after an update.
var admittedUpdates = map[string]struct {
	kind          simtest.Kind
	before, after string
}{
	"another size":               {simtest.KindMemcached, `spec: {size: 3}`, `spec: {size: 4}`},
	"the same with its defaults": {simtest.KindMemcached, `spec: {size: 3}`, `spec: {size: 3, config: {threads: 4}}`},
	"a label":                    {simtest.KindMemcached, `spec: {size: 3}`, `{metadata: {labels: {a: b}}, spec: {size: 3}}`},
	"a status":                   {simtest.KindMemcached, `spec: {size: 3}`, `{spec: {size: 3}, status: {phase: Degraded}}`},
	"an unknown field":           {simtest.KindMemcached, `spec: {size: 3}`, `spec: {size: 3, replicas: 4}`},
	"another generation":         {simtest.KindMemcached, `spec: {size: 3}`, `{metadata: {generation: 7}, spec: {size: 4}}`},
	"the same immutable spec":    {simtest.KindBackup, `spec: ` + backupSpec, `spec: ` + backupSpec},
	"another immutable spec":     {simtest.KindBackup, `spec: ` + backupSpec, `spec: ` + strings.Replace(backupSpec, "backups", "others", 1)},
}

// TestAdmitAgreesWithTheAPIServer compares what Admit accepts, rejects and stores with the API server.
func TestAdmitAgreesWithTheAPIServer(t *testing.T) {
	config := rest.CopyConfig(server.Admin)
	config.WarningHandler = rest.NoWarnings{} // about each field that it drops
	c, err := client.New(config, client.Options{})
	must(t, err)
	s := simtest.Schema(simtest.KindMemcached)

	t.Run("creations", func(t *testing.T) {
		for wanted, objects := range map[bool]map[string]string{true: acceptances, false: rejections} {
			for reason, text := range objects {
				created := named(t, simtest.KindMemcached, "cache", text)
				before := created.DeepCopy()
				admitted, rejection := s.Admit(t.Context(), created, nil)
				if diff := cmp.Diff(before.Object, created.Object); diff != "" {
					t.Errorf("%s: the argument is changed:\n%s", reason, diff)
				}
				err := c.Create(t.Context(), created, client.DryRunAll)
				if (err == nil) != wanted {
					t.Errorf("%s: error %v", reason, err)
				}
				compare(t, reason, admitted, rejection, created, err)
			}
		}
	})

	t.Run("updates", func(t *testing.T) {
		for reason, u := range admittedUpdates {
			kind, name := u.kind, strings.ReplaceAll(reason, " ", "-")
			stored := named(t, kind, name, u.before)
			must(t, c.Create(t.Context(), stored))
			stored.Object["status"] = map[string]any{"phase": "Running"}
			must(t, c.Status().Update(t.Context(), stored))
			updated := named(t, kind, name, u.after)
			updated.SetResourceVersion(stored.GetResourceVersion())
			admitted, rejection := simtest.Schema(kind).Admit(t.Context(), updated, stored)
			compare(t, reason, admitted, rejection, updated, c.Update(t.Context(), updated, client.DryRunAll))
		}
	})

	t.Run("edits", func(t *testing.T) {
		const seeds, edits = 10, 30
		creations, updates := map[bool]int{}, map[bool]int{} // by whether they are accepted
		for seed := range uint64(seeds) {
			e := s.NewEdits(rand.New(rand.NewPCG(seed, 0)))
			e.Weigh("spec.backup.bootstrap", 4)
			var stored *unstructured.Unstructured
			spec := map[string]any{}
			for n := range edits {
				edited, story := e.Next(spec)
				reason := fmt.Sprintf("seed %d, edit %d, %s", seed, n, story)

				// Each edit is also tried as a new object. The first that is accepted is stored.
				answer := named(t, simtest.KindMemcached, fmt.Sprintf("cache-%d-%d", seed, n), "")
				answer.Object["spec"] = runtime.DeepCopyJSONValue(edited)
				admitted, rejected := s.Admit(t.Context(), answer, nil)
				var options []client.CreateOption
				if stored != nil {
					options = append(options, client.DryRunAll)
				}
				err := c.Create(t.Context(), answer, options...)
				compare(t, "creation, "+reason, admitted, rejected, answer, err)
				creations[err == nil]++

				if stored != nil {
					answer = stored.DeepCopy()
					answer.Object["spec"] = edited
					admitted, rejected = s.Admit(t.Context(), answer, stored)
					err = c.Update(t.Context(), answer)
					compare(t, "update, "+reason, admitted, rejected, answer, err)
					updates[err == nil]++
				}
				if err == nil {
					stored, spec = answer, answer.Object["spec"].(map[string]any)
				}
			}
		}
		for what, n := range map[string]map[bool]int{"creations": creations, "updates": updates} {
			t.Logf("%s: %d accepted, %d rejected", what, n[true], n[false])
			if n[true] < 100 || n[false] < 20 {
				t.Errorf("%s: %d accepted and %d rejected are too few", what, n[true], n[false])
			}
		}
	})
}

// compare compares the result of Admit with the answer of the API server.
func compare(t *testing.T, reason string, admitted *unstructured.Unstructured, rejected error, answer *unstructured.Unstructured, err error) {
	t.Helper()
	switch {
	case err != nil && !apierrors.IsInvalid(err):
		t.Fatalf("%s: %v", reason, err)
	case err != nil && rejected == nil:
		t.Errorf("%s: Admit accepts it, the API server says %v", reason, err)
	case err == nil && rejected != nil:
		t.Errorf("%s: the API server accepts it, Admit says %v", reason, rejected)
	case err != nil:
		if diff := cmp.Diff(sorted(err), sorted(rejected)); diff != "" {
			t.Errorf("%s: other causes (-API server +Admit):\n%s", reason, diff)
		}
	default:
		if diff := cmp.Diff(answer.Object, admitted.Object, cmpopts.IgnoreMapEntries(func(name string, _ any) bool { return name == "metadata" })); diff != "" {
			t.Errorf("%s: another object (-API server +Admit):\n%s", reason, diff)
		}
		if want, got := answer.GetGeneration(), admitted.GetGeneration(); want != got {
			t.Errorf("%s: generation %d, the API server's is %d", reason, got, want)
		}
	}
}

// sorted returns the causes of a rejection, sorted, without those of the scale subresource, which repeat those of the
// schema with another path.
func sorted(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return []string{err.Error()}
	}
	var said []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != ".spec.size" {
			said = append(said, cause.Field+": "+cause.Message)
		}
	}
	slices.Sort(said)
	return said
}

// named returns an object with the content of a YAML text, and with a name if that has none.
func named(t *testing.T, kind simtest.Kind, name, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if text != "" {
		err = json.Unmarshal(raw, &u.Object)
	}
	must(t, err)
	u.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(string(kind)))
	if u.GetName() == "" {
		u.SetName(name)
	}
	u.SetNamespace("default")
	return u
}
