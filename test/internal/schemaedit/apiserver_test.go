package schemaedit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/internal/apiservertest"
)

// TestAdmitAgreesWithTheAPIServer compares what Admit accepts, rejects and stores with the API server.
func TestAdmitAgreesWithTheAPIServer(t *testing.T) {
	server := apiservertest.StartForTest(t)
	server.Admin.WarningHandler = rest.NoWarnings{} // about each field that it drops
	c, err := client.New(server.Admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, "memcacheds")

	t.Run("rejections", func(t *testing.T) {
		for reason, rejection := range rejections {
			created := named(t, s, "cache", rejection.text)
			admitted, rejected := s.Admit(t.Context(), created, nil)
			err := c.Create(t.Context(), created, client.DryRunAll)
			compare(t, reason, admitted, rejected, created, err)
		}
	})

	t.Run("transition rules", func(t *testing.T) {
		backups := load(t, "memcachedbackups")
		made, err := backups.Admit(t.Context(), named(t, backups, "nightly", `spec: {memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		stored := made.DeepCopy()
		if err := c.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{`{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`, `{memcachedRef: {name: cache}, store: {persistentVolumeClaim: {claimName: others}}}`} {
			updated := stored.DeepCopy()
			updated.Object["spec"] = parse(t, text)
			admitted, rejected := backups.Admit(t.Context(), updated, stored)
			compare(t, text, admitted, rejected, updated, c.Update(t.Context(), updated, client.DryRunAll))
		}
	})

	t.Run("edits", func(t *testing.T) {
		const seeds, edits = 10, 30
		creations, updates := counts{}, counts{}
		for seed := range uint64(seeds) {
			e := seeded(s, seed)
			e.Weigh("spec.bootstrap", defaultWeight)
			var stored *unstructured.Unstructured
			spec := map[string]any{}
			for n := range edits {
				edited, story := e.Next(spec)
				reason := fmt.Sprintf("seed %d, edit %d, %s", seed, n, story)

				// Each edit is also tried as a new object. The first that is accepted is stored.
				answer := object(s, edited).DeepCopy()
				answer.SetName(fmt.Sprintf("cache-%d-%d", seed, n))
				admitted, rejected := s.Admit(t.Context(), answer, nil)
				var options []client.CreateOption
				if stored != nil {
					options = append(options, client.DryRunAll)
				}
				err := c.Create(t.Context(), answer, options...)
				compare(t, "creation, "+reason, admitted, rejected, answer, err)
				creations.count(err)

				if stored != nil {
					answer = stored.DeepCopy()
					answer.Object["spec"] = edited
					admitted, rejected = s.Admit(t.Context(), answer, stored)
					err = c.Update(t.Context(), answer)
					compare(t, "update, "+reason, admitted, rejected, answer, err)
					updates.count(err)
				}
				if err == nil {
					stored, spec = answer, answer.Object["spec"].(map[string]any)
				}
			}
		}
		for what, n := range map[string]counts{"creations": creations, "updates": updates} {
			t.Logf("%s: %d accepted, %d rejected", what, n.accepted, n.rejected)
			if n.accepted < 100 || n.rejected < 20 {
				t.Errorf("%s: %d accepted and %d rejected are too few", what, n.accepted, n.rejected)
			}
		}
	})
}

type counts struct{ accepted, rejected int }

func (c *counts) count(err error) {
	if err == nil {
		c.accepted++
	} else {
		c.rejected++
	}
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
		if diff := cmp.Diff(answer.Object["spec"], admitted.Object["spec"]); diff != "" {
			t.Errorf("%s: another spec (-API server +Admit):\n%s", reason, diff)
		}
		if want, got := answer.GetGeneration(), admitted.GetGeneration(); want != got {
			t.Errorf("%s: generation %d, the API server's is %d", reason, got, want)
		}
	}
}

// sorted returns the causes of a rejection, sorted, without those of the scale subresource, which repeat those of the
// schema with another path.
func sorted(err error) []string {
	all := causes(err)
	slices.Sort(all)
	return slices.DeleteFunc(all, func(cause string) bool { return strings.HasPrefix(cause, ".spec.size: ") })
}
