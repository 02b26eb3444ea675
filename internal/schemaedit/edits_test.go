package schemaedit

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

func TestEditsOfASeedAreTheSame(t *testing.T) {
	stories := func(seed uint64) []string {
		s := load(t, "memcacheds") // again, so that the order of maps does not matter
		var all []string
		wander(t, s, seeded(s, seed), 100, func(story string, _, _, _ *unstructured.Unstructured, _ error) { all = append(all, story) })
		return all
	}
	first := stories(1)
	if diff := cmp.Diff(first, stories(1)); diff != "" {
		t.Errorf("the same seed:\n%s", diff)
	}
	if slices.Equal(first, stories(2)) {
		t.Error("another seed has the same edits")
	}
}

// reach returns the places that n edits of an empty spec write.
func reach(s *Schema, edits *Edits, n int) map[string]bool {
	reached := map[string]bool{}
	for range n {
		edited, _ := edits.Next(map[string]any{})
		for _, p := range s.spec.in(edited) {
			reached[p.path] = true
		}
	}
	return reached
}

func TestEditsReachEveryField(t *testing.T) {
	s := load(t, "memcacheds")
	edits := seeded(s, 1)
	for _, field := range edits.fields { // otherwise those of affinity take the longest, which has half of all
		edits.Weigh(field.path, len(field.all()))
	}
	const most = 100_000 // ten times what it takes
	missing := map[string]bool{}
	for _, p := range s.spec.all()[1:] {
		missing[p.path] = true
	}
	for n := 0; n < most && len(missing) > 0; n++ {
		edited, _ := edits.Next(map[string]any{})
		for _, p := range s.spec.in(edited) {
			delete(missing, p.path)
		}
	}
	for path := range missing {
		t.Errorf("%s is not reached within %d edits", path, most)
	}
}

func TestEditsSkipFieldsWithoutWeight(t *testing.T) {
	s := load(t, "memcacheds")
	edits := seeded(s, 1)
	edits.Weigh("spec.pod.affinity", 0)
	for path := range reach(s, edits, 2000) {
		if strings.HasPrefix(path, "spec.backup.bootstrap") || strings.HasPrefix(path, "spec.pod.affinity") {
			t.Errorf("%s is edited", path)
		}
	}
}

// causes returns the messages of an Invalid error.
func causes(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return []string{err.Error()}
	}
	var said []string
	for _, cause := range status.Status().Details.Causes {
		said = append(said, cause.Field+": "+cause.Message)
	}
	return said
}

func TestEditsHaveTheDescribedResultAndCanBeRead(t *testing.T) {
	s := load(t, "memcacheds")
	const n = 1000
	count := map[string]int{}
	wander(t, s, seeded(s, 1), n, func(story string, edited, old, admitted *unstructured.Unstructured, err error) {
		if says := strings.HasSuffix(story, "(the API server rejects it)"); says != (err != nil) {
			t.Errorf("%s: error %v", story, err)
		}
		if old != nil && cmp.Equal(edited.Object["spec"], old.Object["spec"]) {
			t.Errorf("%s: no change", story)
		}
		if err == nil {
			// One that the operator cannot read would end its watch for all Memcacheds.
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(admitted.Object, &v1beta1.Memcached{}); err != nil {
				t.Errorf("%s: %v", story, err)
			}
		}
		switch {
		case err != nil:
			count["rejected"]++
		case strings.HasSuffix(story, ")"):
			count["doubtful"]++
		default:
			count["valid"]++
		}
	})
	for what, percent := range map[string][2]int{"valid": {75, 88}, "rejected": {8, 16}, "doubtful": {4, 12}} {
		if got := count[what] * 100 / n; got < percent[0] || got > percent[1] {
			t.Errorf("%d%% of the edits are %s, want %d to %d", got, what, percent[0], percent[1])
		}
	}
}

func TestEditsProvokeEveryError(t *testing.T) {
	s := load(t, "memcacheds")
	missing := []string{
		"must be of type", "should be greater than or equal to", "should be less than or equal to", "Required value", `Unsupported value: "Sometimes"`,
		"Too long", "Too many", "should be at least", "should match", "version must be three numbers", "image must be an image reference",
		"memory must be at least", "memory must be at most", "maxItemSize must be a multiple", "config.maxItemSize must be at most half", "too small for the cache",
		"extraArgs must begin", "without spaces",
		"labels must not", "annotations must not", "a store requires exactly one", "serverNameTemplate must contain",
		"deletionPolicy Backup requires backup.final", "networkPolicy.allowedClients requires mode", "each of networkPolicy.allowedClients must", "securityContext.seccompProfile must", "spec.backup.final.deadlineSeconds", "spec.backup.refill.maxAgeSeconds",
	}
	edits := seeded(s, 1)
	for n := 0; n < 20_000 && len(missing) > 0; n++ {
		edited := map[string]any{}
		edits.edit(edited, rejected)
		if _, err := s.Admit(t.Context(), object(s, edited), nil); err != nil {
			missing = slices.DeleteFunc(missing, func(says string) bool { return strings.Contains(err.Error(), says) })
		}
	}
	if len(missing) > 0 {
		t.Errorf("no edit is rejected with one of %q", missing)
	}
}

func TestNextDoesNotChangeTheSpec(t *testing.T) {
	s := load(t, "memcacheds")
	edits := seeded(s, 1)
	spec := parse(t, `{size: 3, config: {extraArgs: [-v]}, pod: {metadata: {labels: {a: b}}}, updateStrategy: {maintenanceWindows: [{start: "02:00", durationSeconds: 300}]}, backup: {final: {store: {persistentVolumeClaim: {claimName: backups}}}}}`)
	before := runtime.DeepCopyJSON(spec)
	for range 1000 {
		edits.Next(spec)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the spec is changed:\n%s", diff)
	}
}

func TestTablesNameFieldsOfTheSpec(t *testing.T) {
	s := load(t, "memcacheds")
	fields, paths := map[string]bool{}, map[string]bool{}
	for _, p := range s.spec.all() {
		paths[p.path], paths[p.last()] = true, true
		if p.pattern != nil && len(of(known.Preferred, p)) == 0 {
			t.Errorf("preferred: %s has a pattern and needs values", p.path)
		}
	}
	for _, p := range editable(s.spec) {
		fields[p.path] = true
		if _, ok := known.Weights[p.path]; !ok {
			t.Errorf("weights: add %s, 0 if it is never edited", p.path)
		}
	}
	if len(known.Weights) == 0 || len(known.Preferred) == 0 || len(known.Keys) == 0 || len(known.Rejected) == 0 || len(known.Doubtful) == 0 {
		t.Fatal("a table is empty")
	}
	for field := range known.Weights {
		if !fields[field] {
			t.Errorf("weights: the spec has no field %s", field)
		}
	}
	named := slices.Concat(slices.Collect(maps.Keys(known.Preferred)), slices.Collect(maps.Keys(known.Rejected)), slices.Collect(maps.Keys(known.Keys)))
	for _, d := range known.Doubtful {
		named = append(named, d.Field)
	}
	for _, path := range named {
		if !paths[path] {
			t.Errorf("the spec has no field %s", path)
		}
	}
}
