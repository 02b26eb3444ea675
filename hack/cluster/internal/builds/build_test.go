package builds

import (
	"os"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
)

// They are compiled once then.
func TestKubernetesHasTheLibrariesOfTheOperator(t *testing.T) {
	library, err := requiredVersion(cache.Dirs{Source: "../.."}, "../..", "k8s.io/api")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../kubernetes/go.mod")
	if err != nil || !strings.Contains(string(mod), "k8s.io/api => k8s.io/api "+library) {
		t.Errorf("the operator requires k8s.io/api %s, and Kubernetes another version (%v)", library, err)
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
