package builds

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
)

func TestKubernetesVersion(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join("../../kubernetes", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version, err := requiredVersion("../../kubernetes", "k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	flags := versionFlags(version)
	for _, want := range []string{"version.gitVersion=" + version, "version.gitMajor=1 "} {
		if !strings.Contains(flags, want) {
			t.Errorf("linker flags lack %q: %s", want, flags)
		}
	}
	// Kubernetes is compiled with the libraries of the operator, so that they are compiled once.
	library, err := requiredVersion("../../../..", "k8s.io/api")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "k8s.io/api => k8s.io/api "+library) {
		t.Errorf("the operator requires k8s.io/api %s, and Kubernetes another version", library)
	}
	minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	if !strings.HasPrefix(library, "v0."+minor+".") {
		t.Errorf("Kubernetes is %s, and its libraries are %s", version, library)
	}
}

func TestAPIServerOfTheClusterServesTestsOfTheAPI(t *testing.T) {
	source, err := Source()
	if err != nil {
		t.Fatal(err)
	}
	version, err := requiredVersion("../../kubernetes", "k8s.io/kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	k, err := goKey(filepath.Join(source, "kubernetes"), allOfKubernetes, versionFlags(version), kubernetesPrograms)
	if err != nil {
		t.Fatal(err)
	}
	d := cache.Under(t.TempDir())
	built := filepath.Join(d.Builds, allOfKubernetes+"-"+k)
	if err := os.MkdirAll(built, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := kubernetes(d, source, apiServer, "", apiServerPrograms); got != built || err != nil {
		t.Errorf("the API server is in %q, want %q (%v)", got, built, err)
	}
}

func TestFlagsAreThoseOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile("../../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if flags := strings.Join(leanFlags, " "); !strings.Contains(string(makefile), "$(strip $(GOFLAGS) "+flags+" -vet=off)") {
		t.Errorf("the Makefile doesn't set GOFLAGS to %s: two flavours compile everything twice", flags)
	}
}
