package schemaedit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// refusals are objects and what the API server says of them: nothing when it takes
// them.
var refusals = map[string]struct{ text, says string }{
	"an empty spec is taken":               {`spec: {}`, ""},
	"no spec":                              {`{}`, "spec: Required value"},
	"a spec that is null":                  {`spec: null`, "spec: Required value"},
	"a number that is a word":              {`spec: {size: three}`, `spec.size in body must be of type integer: "string"`},
	"a fraction":                           {`spec: {threads: 1.5}`, "spec.threads in body must be of type"},
	"below the minimum":                    {`spec: {size: -1}`, "spec.size in body should be greater than or equal to 0"},
	"above the maximum":                    {`spec: {threads: 65}`, "spec.threads in body should be less than or equal to 64"},
	"a string that is a number":            {`spec: {image: 1}`, `spec.image in body must be of type string: "integer"`},
	"a string that is too long":            {`spec: {version: 1.6.` + strings.Repeat("1", 33) + `}`, "spec.version: Too long: may not be more than 32 bytes"},
	"a string that is too short":           {`spec: {backup: {store: {persistentVolumeClaim: {claimName: ""}}}}`, "claimName in body should be at least 1 chars long"},
	"another word than those of the enum":  {`spec: {deletionPolicy: Keep}`, `spec.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Backup"`},
	"a pattern that does not match":        {`spec: {updateStrategy: {maintenanceWindows: [{start: "24:00", durationMinutes: 1}]}}`, "maintenanceWindows[0].start in body should match"},
	"a quantity that is none":              {`spec: {memory: lots}`, "spec.memory in body should match"},
	"a quantity as a number is taken":      {`spec: {memory: 67108864}`, ""},
	"a quantity that is a yes":             {`spec: {memory: true}`, "spec.memory"},
	"a required field that is missing":     {`spec: {hashing: {serverName: "{shard}"}}`, "spec.hashing.ring: Required value"},
	"a list that is too long":              {`spec: {extraArgs: [` + strings.Repeat("-v,", 33) + `]}`, "spec.extraArgs: Too many: 33: must have at most 32 items"},
	"the same item twice":                  {`spec: {imagePullSecrets: [{name: a}, {name: a}]}`, "spec.imagePullSecrets[1]: Duplicate value"},
	"the same item of a set twice":         {`spec: {updateStrategy: {maintenanceWindows: [{start: "02:00", durationMinutes: 1, days: [Monday, Monday]}]}}`, "days[1]: Duplicate value"},
	"a map that is a list":                 {`spec: {podLabels: [a]}`, `spec.podLabels in body must be of type object: "array"`},
	"a rule of one field":                  {`spec: {version: v1.6.45}`, "spec.version: Invalid value: \"v1.6.45\": version must be three numbers such as 1.6.45"},
	"a rule of two fields":                 {`spec: {memory: 64Mi, maxItemSize: 33Mi}`, "maxItemSize must be"},
	"a rule of a field and a default":      {`spec: {resources: {limits: {memory: 64Mi}}}`, "resources.limits.memory is too small for the cache"},
	"a rule of a list":                     {`spec: {extraArgs: [-m, "64"]}`, "spec.extraArgs: Invalid value"},
	"a rule of a map":                      {`spec: {podLabels: {app.kubernetes.io/name: web}}`, "podLabels must not hold labels of app.kubernetes.io/"},
	"a rule of either or":                  {`spec: {backup: {store: {}}}`, "spec.backup.store: Invalid value: a store is either persistentVolumeClaim or s3"},
	"a rule that cannot be worked out":     {`spec: {rewarm: {maxAge: soon}}`, "spec.rewarm.maxAge: Invalid value"},
	"rules are not asked of what is wrong": {`spec: {size: three, version: v1}`, "some validation rules were not checked because the object was invalid"},
	"an option that memcached refuses":     {`spec: {extraArgs: [-R, "0"]}`, ""},
	"a field that nobody knows is dropped": {`spec: {replicas: 3}`, ""},
}

func TestAdmitRefusesWithTheSentencesOfTheAPIServer(t *testing.T) {
	s := load(t, "memcacheds")
	for reason, c := range refusals {
		t.Run(reason, func(t *testing.T) {
			admitted, err := s.Admit(t.Context(), named(t, s, "cache", c.text), nil)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.says == "":
			case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says):
				t.Errorf("error %v, want an Invalid one that says %q", err, c.says)
			case admitted != nil:
				t.Error("it is refused and returned all the same")
			}
		})
	}
}

func TestAdmitAsksTheRulesOfTheWholeObject(t *testing.T) {
	s := load(t, "memcacheds")
	_, err := s.Admit(t.Context(), named(t, s, "1cache", "spec: {}"), nil)
	if want := "the name becomes that of Services"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func TestAdmitTellsCausesInTheOrderOfTheirFields(t *testing.T) {
	s := load(t, "memcacheds")
	_, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {threads: 0, size: -1, connections: 1, updateStrategy: {minSecondsBetweenShards: -1}, imagePullPolicy: Sometimes, deletionPolicy: Keep}`), nil)
	var fields []string
	for _, cause := range causes(err) {
		field, _, _ := strings.Cut(cause, ": ")
		fields = append(fields, field)
	}
	want := []string{"<nil>", "spec.connections", "spec.deletionPolicy", "spec.imagePullPolicy", "spec.size", "spec.threads", "spec.updateStrategy.minSecondsBetweenShards"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestAdmitDefaultsAndDropsWhatIsCreated(t *testing.T) {
	s := load(t, "memcacheds")
	for reason, c := range map[string]struct{ spec, want string }{
		"an empty spec": {
			`{}`,
			`{size: 1, memory: 64Mi, connections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete}`,
		},
		"what is there stays": {
			`{size: 0, memory: 67108864, connections: 256, threads: 1, maxItemSize: 512Ki, deletionPolicy: Backup, paused: false}`,
			`{size: 0, memory: 67108864, connections: 256, threads: 1, maxItemSize: 512Ki, deletionPolicy: Backup, paused: false}`,
		},
		"below an object that is there": {
			`{rewarm: {}, updateStrategy: {hitRatioGate: {}, maintenanceWindows: [{start: "02:00", durationMinutes: 5}]}}`,
			`{size: 1, memory: 64Mi, connections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete, rewarm: {maxAge: 24h},
			  updateStrategy: {minSecondsBetweenShards: 0, whenNotWarm: Stop, hitRatioGate: {percent: 90, minRequests: 1000, timeoutSeconds: 600, whenTimedOut: Stop},
			                   maintenanceWindows: [{start: "02:00", durationMinutes: 5, timeZone: UTC}]}}`,
		},
		"null is nothing": {
			`{size: null, version: null, podLabels: null}`,
			`{size: 1, memory: 64Mi, connections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete}`,
		},
		"unknown fields, but not the keys of a map": {
			`{replicas: 3, podLabels: {replicas: "3"}, imagePullSecrets: [{name: a, kind: Secret}]}`,
			`{size: 1, memory: 64Mi, connections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete, podLabels: {replicas: "3"}, imagePullSecrets: [{name: a}]}`,
		},
	} {
		t.Run(reason, func(t *testing.T) {
			created := named(t, s, "cache", "{spec: "+c.spec+", status: {phase: Running}, data: {}}")
			before := created.DeepCopy()
			admitted, err := s.Admit(t.Context(), created, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := named(t, s, "cache", "{spec: "+c.want+"}")
			want.SetGeneration(1)
			if diff := cmp.Diff(want.Object, admitted.Object); diff != "" {
				t.Errorf("admitted (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, created.Object); diff != "" {
				t.Errorf("the object itself is changed:\n%s", diff)
			}
		})
	}
}

func TestAdmitCountsTheGenerationOfAnUpdate(t *testing.T) {
	s := load(t, "memcacheds")
	old, err := s.Admit(t.Context(), named(t, s, "cache", "spec: {size: 3}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	old.Object["status"] = parse(t, `{phase: Running}`)
	for reason, c := range map[string]struct {
		text string
		want int64
	}{
		"another size":                  {`spec: {size: 4}`, 2},
		"the same with its defaults":    {`spec: {size: 3, threads: 4}`, 1},
		"a label":                       {`{metadata: {labels: {a: b}}, spec: {size: 3}}`, 1},
		"a status is not written so":    {`{spec: {size: 3}, status: {phase: Degraded}}`, 1},
		"a field that is not known":     {`spec: {size: 3, replicas: 4}`, 1},
		"a generation that was made up": {`{metadata: {generation: 7}, spec: {size: 4}}`, 2},
	} {
		t.Run(reason, func(t *testing.T) {
			admitted, err := s.Admit(t.Context(), named(t, s, "cache", c.text), old)
			if err != nil {
				t.Fatal(err)
			}
			if got := admitted.GetGeneration(); got != c.want {
				t.Errorf("generation %d, want %d", got, c.want)
			}
			if diff := cmp.Diff(old.Object["status"], admitted.Object["status"]); diff != "" {
				t.Errorf("the status is not the one that was there:\n%s", diff)
			}
		})
	}
}

func TestAdmitHoldsTheRulesOfTransitions(t *testing.T) {
	s := load(t, "memcachedbackups")
	old, err := s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), old); err != nil {
		t.Errorf("the same again is refused: %v", err)
	}
	_, err = s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcached: {name: other}, store: {persistentVolumeClaim: {claimName: backups}}}`), old)
	if want := "a backup runs once and cannot be changed"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func TestAdmitLetsWhatWasWrongBeforeBe(t *testing.T) {
	s := load(t, "memcacheds")
	old := named(t, s, "cache", `spec: {size: 1, threads: 65, version: v1, memory: 64Mi, maxItemSize: 1Mi, connections: 1024, deletionPolicy: Delete}`)
	if _, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {size: 2, threads: 65, version: v1}`), old); err != nil {
		t.Errorf("another size is refused: %v", err)
	}
	for _, text := range []string{`spec: {threads: 66, version: v1}`, `spec: {threads: 65, version: v2}`} {
		if _, err := s.Admit(t.Context(), named(t, s, "cache", text), old); !apierrors.IsInvalid(err) {
			t.Errorf("%s: error %v, want an Invalid one", text, err)
		}
	}
}

func TestAdmitWantsItsOwnKind(t *testing.T) {
	backups := load(t, "memcachedbackups")
	_, err := load(t, "memcacheds").Admit(t.Context(), named(t, backups, "cache", "spec: {}"), nil)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("error %v, want a bad request", err)
	}
}

func TestLoadSaysWhatIsWrongWithAFile(t *testing.T) {
	for reason, c := range map[string]struct{ text, says string }{
		"no file":           {"", "reading the CustomResourceDefinition"},
		"no definition":     {"kind: 1", "reading the CustomResourceDefinition in"},
		"no stored version": {"spec: {versions: [{name: v1, served: true, storage: false}]}", "stores no version"},
		"no schema":         {"{metadata: {name: things}, spec: {versions: [{name: v1, served: true, storage: true}]}}", "schema v1 of things: there is none"},
		"no spec":           {"{metadata: {name: things}, spec: {versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}", "has no spec"},
	} {
		t.Run(reason, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "crd.yaml")
			if c.text != "" {
				if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Load(file); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}

// TestSlimRulesAnswerAsWholeOnes holds what Admit saves against what it leaves out.
func TestSlimRulesAnswerAsWholeOnes(t *testing.T) {
	s := load(t, "memcacheds")
	whole := *s
	whole.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	refused := 0
	wander(t, s, seeded(s, 3), 500, func(edited, old *unstructured.Unstructured, story string) {
		_, err := s.Admit(t.Context(), edited, old)
		_, want := whole.Admit(t.Context(), edited, old)
		if fmt.Sprint(err) != fmt.Sprint(want) {
			t.Errorf("%s: error %v, want %v", story, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "some validation rules were not checked") {
			refused++
		}
	})
	if refused < 10 {
		t.Errorf("the rules refused %d edits, which proves little", refused)
	}
}

func TestSlimKeepsWhatRulesReadAsAWhole(t *testing.T) {
	for rule, slims := range map[string]bool{
		"self.a == 1":                     true,
		"has(self.a) && self.b.c > 0":     true,
		"self.a == oldSelf.a":             true,
		"self == oldSelf":                 false,
		"self.a == 1 || self in [dyn(1)]": false,
		"oldSelf.a == 1 ? true : f(self)": false,
	} {
		if got := namesFields(apiextensionsv1.ValidationRules{{Rule: rule}}); got != slims {
			t.Errorf("%s: it names fields alone: %v, want %v", rule, got, slims)
		}
	}
}
