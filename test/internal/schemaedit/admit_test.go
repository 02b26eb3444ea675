package schemaedit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// rejections are objects and the message of the API server; empty if it accepts them.
var rejections = map[string]struct{ text, says string }{
	"an empty spec is accepted":               {`spec: {}`, ""},
	"no spec":                                 {`{}`, "spec: Required value"},
	"a spec that is null":                     {`spec: null`, "spec: Required value"},
	"a string for a number":                   {`spec: {size: three}`, `spec.size in body must be of type integer: "string"`},
	"a fraction":                              {`spec: {threads: 1.5}`, "spec.threads in body must be of type"},
	"below the minimum":                       {`spec: {size: -1}`, "spec.size in body should be greater than or equal to 0"},
	"above the maximum":                       {`spec: {threads: 65}`, "spec.threads in body should be less than or equal to 64"},
	"a number for a string":                   {`spec: {image: 1}`, `spec.image in body must be of type string: "integer"`},
	"a string that is too long":               {`spec: {version: 1.6.` + strings.Repeat("1", 33) + `}`, "spec.version: Too long: may not be more than 32 bytes"},
	"a string that is too short":              {`spec: {finalBackup: {store: {persistentVolumeClaim: {claimName: ""}}}}`, "claimName in body should be at least 1 chars long"},
	"a value not in the enum":                 {`spec: {deletionPolicy: Keep}`, `spec.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Backup"`},
	"a pattern that does not match":           {`spec: {updateStrategy: {maintenanceWindows: [{start: "24:00", durationSeconds: 60}]}}`, "maintenanceWindows[0].start in body should match"},
	"an invalid quantity":                     {`spec: {memory: lots}`, "spec.memory in body should match"},
	"a quantity as a number is accepted":      {`spec: {memory: 67108864}`, ""},
	"a boolean for a quantity":                {`spec: {memory: true}`, "spec.memory"},
	"a required field that is missing":        {`spec: {hashing: {serverNameTemplate: "{shard}"}}`, "spec.hashing.algorithm: Required value"},
	"a list that is too long":                 {`spec: {extraArgs: [` + strings.Repeat("-v,", 33) + `]}`, "spec.extraArgs: Too many: 33: must have at most 32 items"},
	"the same item twice":                     {`spec: {imagePullSecrets: [{name: a}, {name: a}]}`, "spec.imagePullSecrets[1]: Duplicate value"},
	"the same item of a set twice":            {`spec: {updateStrategy: {maintenanceWindows: [{start: "02:00", durationSeconds: 60, days: [Monday, Monday]}]}}`, "days[1]: Duplicate value"},
	"a list for a map":                        {`spec: {podMetadata: {labels: [a]}}`, `spec.podMetadata.labels in body must be of type object: "array"`},
	"a rule of one field":                     {`spec: {version: v1.6.45}`, "spec.version: Invalid value: \"v1.6.45\": version must be three numbers such as 1.6.45"},
	"a rule of two fields":                    {`spec: {memory: 64Mi, maxItemSize: 33Mi}`, "maxItemSize must be"},
	"a rule of a field and a default":         {`spec: {resources: {limits: {memory: 64Mi}}}`, "resources.limits.memory is too small for the cache"},
	"a rule of a list":                        {`spec: {extraArgs: [-m, "64"]}`, "spec.extraArgs: Invalid value"},
	"a rule of a map":                         {`spec: {podMetadata: {labels: {app.kubernetes.io/name: web}}}`, "podMetadata.labels must not contain labels of app.kubernetes.io/"},
	"a rule of either or":                     {`spec: {finalBackup: {store: {}}}`, "spec.finalBackup.store: Invalid value: a store requires exactly one of persistentVolumeClaim and s3"},
	"a rule of a policy and a field":          {`spec: {deletionPolicy: Backup}`, "deletionPolicy Backup requires finalBackup"},
	"rules are not checked with other errors": {`spec: {size: three, version: v1}`, "some validation rules were not checked because the object was invalid"},
	"an option that memcached rejects":        {`spec: {extraArgs: [-R, "0"]}`, ""},
	"an unknown field is dropped":             {`spec: {replicas: 3}`, ""},
}

func TestAdmitRejectsWithTheMessagesOfTheAPIServer(t *testing.T) {
	s := load(t, "memcacheds")
	for reason, c := range rejections {
		t.Run(reason, func(t *testing.T) {
			admitted, err := s.Admit(t.Context(), named(t, s, "cache", c.text), nil)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("it is rejected: %v", err)
			case c.says == "":
			case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.says):
				t.Errorf("error %v, want an Invalid one that says %q", err, c.says)
			case admitted != nil:
				t.Error("it is rejected, but returned")
			}
		})
	}
}

func TestAdmitChecksRulesOfTheObject(t *testing.T) {
	s := load(t, "memcacheds")
	_, err := s.Admit(t.Context(), named(t, s, "1cache", "spec: {}"), nil)
	if want := "the name is used for Services"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func TestAdmitSortsCausesByField(t *testing.T) {
	s := load(t, "memcacheds")
	_, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {threads: 0, size: -1, maxConnections: 1, updateStrategy: {minIntervalSeconds: -1}, imagePullPolicy: Sometimes, deletionPolicy: Keep}`), nil)
	var fields []string
	for _, cause := range causes(err) {
		field, _, _ := strings.Cut(cause, ": ")
		fields = append(fields, field)
	}
	want := []string{"<nil>", "spec.deletionPolicy", "spec.imagePullPolicy", "spec.maxConnections", "spec.size", "spec.threads", "spec.updateStrategy.minIntervalSeconds"}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestAdmitDefaultsAndPrunesANewObject(t *testing.T) {
	s := load(t, "memcacheds")
	for reason, c := range map[string]struct{ spec, want string }{
		"an empty spec": {
			`{}`,
			`{size: 1, memory: 64Mi, maxConnections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete}`,
		},
		"existing values": {
			`{size: 0, memory: 67108864, maxConnections: 256, threads: 1, maxItemSize: 512Ki, finalBackup: {store: {persistentVolumeClaim: {claimName: backups}}, deadlineSeconds: 60, rateLimit: {itemsPerSecond: 0, mebibytesPerSecond: 0}}, deletionPolicy: Backup, paused: false}`,
			`{size: 0, memory: 67108864, maxConnections: 256, threads: 1, maxItemSize: 512Ki, finalBackup: {store: {persistentVolumeClaim: {claimName: backups}}, deadlineSeconds: 60, rateLimit: {itemsPerSecond: 0, mebibytesPerSecond: 0}}, deletionPolicy: Backup, paused: false}`,
		},
		"fields of an existing object": {
			`{refill: {}, updateStrategy: {hitRatioGate: {}, maintenanceWindows: [{start: "02:00", durationSeconds: 300}]}}`,
			`{size: 1, memory: 64Mi, maxConnections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete, refill: {maxAgeSeconds: 86400},
			  updateStrategy: {minIntervalSeconds: 0, onItemLoss: Rollback, crossSeriesUpgrade: Forbid, hitRatioGate: {percent: 90, minRequests: 1000, timeoutSeconds: 600, onTimeout: Stop},
			                   maintenanceWindows: [{start: "02:00", durationSeconds: 300, timeZone: UTC}]}}`,
		},
		"null": {
			`{size: null, version: null, podMetadata: null}`,
			`{size: 1, memory: 64Mi, maxConnections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete}`,
		},
		"unknown fields, and keys of a map": {
			`{replicas: 3, podMetadata: {labels: {replicas: "3"}}, imagePullSecrets: [{name: a, kind: Secret}]}`,
			`{size: 1, memory: 64Mi, maxConnections: 1024, threads: 4, maxItemSize: 1Mi, deletionPolicy: Delete, podMetadata: {labels: {replicas: "3"}}, imagePullSecrets: [{name: a}]}`,
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
				t.Errorf("the argument is changed:\n%s", diff)
			}
		})
	}
}

func TestAdmitIncrementsTheGenerationOfAChangedSpec(t *testing.T) {
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
		"another size":               {`spec: {size: 4}`, 2},
		"the same with its defaults": {`spec: {size: 3, threads: 4}`, 1},
		"a label":                    {`{metadata: {labels: {a: b}}, spec: {size: 3}}`, 1},
		"a status":                   {`{spec: {size: 3}, status: {phase: Degraded}}`, 1},
		"an unknown field":           {`spec: {size: 3, replicas: 4}`, 1},
		"another generation":         {`{metadata: {generation: 7}, spec: {size: 4}}`, 2},
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
				t.Errorf("the status has changed:\n%s", diff)
			}
		})
	}
}

func TestAdmitChecksTransitionRules(t *testing.T) {
	s := load(t, "memcachedbackups")
	old, err := s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), old); err != nil {
		t.Errorf("the same object is rejected: %v", err)
	}
	_, err = s.Admit(t.Context(), named(t, s, "nightly", `spec: {memcachedRef: {name: other}, store: {persistentVolumeClaim: {claimName: backups}}}`), old)
	if want := "a backup runs once and its spec is immutable"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that says %q", err, want)
	}
}

func TestAdmitAcceptsUnchangedErrors(t *testing.T) {
	s := load(t, "memcacheds")
	old := named(t, s, "cache", `spec: {size: 1, threads: 65, version: v1, memory: 64Mi, maxItemSize: 1Mi, maxConnections: 1024, deletionPolicy: Delete}`)
	if _, err := s.Admit(t.Context(), named(t, s, "cache", `spec: {size: 2, threads: 65, version: v1}`), old); err != nil {
		t.Errorf("another size is rejected: %v", err)
	}
	for _, text := range []string{`spec: {threads: 66, version: v1}`, `spec: {threads: 65, version: v2}`} {
		if _, err := s.Admit(t.Context(), named(t, s, "cache", text), old); !apierrors.IsInvalid(err) {
			t.Errorf("%s: error %v, want an Invalid one", text, err)
		}
	}
}

func TestAdmitRejectsAnotherKind(t *testing.T) {
	backups := load(t, "memcachedbackups")
	_, err := load(t, "memcacheds").Admit(t.Context(), named(t, backups, "cache", "spec: {}"), nil)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("error %v, want a bad request", err)
	}
}

func TestLoadReportsErrorsOfTheFile(t *testing.T) {
	for reason, c := range map[string]struct{ text, says string }{
		"no file":           {"", "reading the CustomResourceDefinition"},
		"no definition":     {"kind: 1", "reading the CustomResourceDefinition in"},
		"no stored version": {"spec: {versions: [{name: v1, served: true, storage: false}]}", "stores no version"},
		"no schema":         {"{metadata: {name: things}, spec: {versions: [{name: v1, served: true, storage: true}]}}", "schema v1 of things is missing"},
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
