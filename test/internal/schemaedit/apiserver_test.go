package schemaedit

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startAPIServer returns a client of an API server that knows the operator's kinds.
func startAPIServer(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set, so there is no API server to test against: run make test, or eval \"$(make -s env)\" first")
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{bases},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 2 * time.Minute, // other tests may run on this machine
	}
	config, err := environment.Start()
	t.Cleanup(func() { environment.Stop() })
	if err != nil {
		t.Fatalf("starting the API server: %v", err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{} // of each field that it drops
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAdmitAgreesWithTheAPIServer is the reason to believe Admit: what it takes,
// refuses and stores is what the API server does, for creations and for updates.
func TestAdmitAgreesWithTheAPIServer(t *testing.T) {
	c := startAPIServer(t)
	s := load(t, "memcacheds")

	t.Run("of what is refused for a reason", func(t *testing.T) {
		for reason, refusal := range refusals {
			created := named(t, s, "cache", refusal.text)
			admitted, refused := s.Admit(t.Context(), created, nil)
			err := c.Create(t.Context(), created, client.DryRunAll)
			compare(t, reason, admitted, refused, created, err)
		}
	})

	t.Run("of a rule that compares with what was", func(t *testing.T) {
		backups := load(t, "memcachedbackups")
		made, err := backups.Admit(t.Context(), named(t, backups, "nightly", `spec: {memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		stored := made.DeepCopy()
		if err := c.Create(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{`{memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: backups}}}`, `{memcached: {name: cache}, store: {persistentVolumeClaim: {claimName: others}}}`} {
			updated := stored.DeepCopy()
			updated.Object["spec"] = parse(t, text)
			admitted, refused := backups.Admit(t.Context(), updated, stored)
			compare(t, text, admitted, refused, updated, c.Update(t.Context(), updated, client.DryRunAll))
		}
	})

	t.Run("of edits", func(t *testing.T) {
		const seeds, edits = 10, 30
		creations, updates := counts{}, counts{}
		for seed := range uint64(seeds) {
			e := seeded(s, seed)
			e.Weigh("bootstrap", defaultWeight)
			var stored *unstructured.Unstructured
			spec := map[string]any{}
			for n := range edits {
				edited, story := e.Next(spec)
				reason := fmt.Sprintf("seed %d, edit %d, %s", seed, n, story)

				// Each edit is tried as a new object too; the first that is taken stays.
				answer := object(s, edited).DeepCopy()
				answer.SetName(fmt.Sprintf("cache-%d-%d", seed, n))
				admitted, refused := s.Admit(t.Context(), answer, nil)
				var options []client.CreateOption
				if stored != nil {
					options = append(options, client.DryRunAll)
				}
				err := c.Create(t.Context(), answer, options...)
				compare(t, "creation, "+reason, admitted, refused, answer, err)
				creations.count(err)

				if stored != nil {
					answer = stored.DeepCopy()
					answer.Object["spec"] = edited
					admitted, refused = s.Admit(t.Context(), answer, stored)
					err = c.Update(t.Context(), answer)
					compare(t, "update, "+reason, admitted, refused, answer, err)
					updates.count(err)
				}
				if err == nil {
					stored, spec = answer, answer.Object["spec"].(map[string]any)
				}
			}
		}
		for what, n := range map[string]counts{"creations": creations, "updates": updates} {
			t.Logf("%s: %d taken, %d refused", what, n.taken, n.refused)
			if n.taken < 100 || n.refused < 20 {
				t.Errorf("%s: %d taken and %d refused, which proves little", what, n.taken, n.refused)
			}
		}
	})
}

// counts are answers of the API server.
type counts struct{ taken, refused int }

func (c *counts) count(err error) {
	if err == nil {
		c.taken++
	} else {
		c.refused++
	}
}

// compare holds what Admit made of an object against the API server's answer.
func compare(t *testing.T, reason string, admitted *unstructured.Unstructured, refused error, answer *unstructured.Unstructured, err error) {
	t.Helper()
	switch {
	case err != nil && !apierrors.IsInvalid(err):
		t.Fatalf("%s: %v", reason, err)
	case err != nil && refused == nil:
		t.Errorf("%s: Admit takes it, the API server says %v", reason, err)
	case err == nil && refused != nil:
		t.Errorf("%s: the API server takes it, Admit says %v", reason, refused)
	case err != nil:
		if diff := cmp.Diff(said(err), said(refused)); diff != "" {
			t.Errorf("%s: it is refused otherwise (-API server +Admit):\n%s", reason, diff)
		}
	default:
		if diff := cmp.Diff(answer.Object["spec"], admitted.Object["spec"]); diff != "" {
			t.Errorf("%s: another spec is stored (-API server +Admit):\n%s", reason, diff)
		}
		if want, got := answer.GetGeneration(), admitted.GetGeneration(); want != got {
			t.Errorf("%s: generation %d, the API server's is %d", reason, got, want)
		}
	}
}

// said returns the causes of a refusal in their order, but for those of the scale
// subresource, whose path has a dot of its own: they say again what the schema says.
func said(err error) []string {
	all := causes(err)
	slices.Sort(all)
	return slices.DeleteFunc(all, func(cause string) bool { return strings.HasPrefix(cause, ".spec.size: ") })
}
