// Package workflows verifies that the workflows test the Kubernetes versions that the ClusterServiceVersion claims.
package workflows

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// matches returns what the group of an expression matches in a file, at least once.
func matches(t *testing.T, file, expression string) (all []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../..", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(expression).FindAllStringSubmatch(string(content), -1) {
		all = append(all, match[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has no %s", file, expression)
	}
	return all
}

// The ClusterServiceVersion claims all minor versions from minKubeVersion to that of the Kubernetes libraries.
func TestKindHasTheKubernetesVersionsThatAreClaimed(t *testing.T) {
	oldest, _ := strconv.Atoi(matches(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml", `minKubeVersion: 1\.(\d+)`)[0])
	newest, _ := strconv.Atoi(matches(t, "go.mod", `\tk8s\.io/api v0\.(\d+)\.`)[0])
	var claimed []string
	for minor := oldest; minor <= newest; minor++ {
		claimed = append(claimed, strconv.Itoa(minor))
	}
	for file, want := range map[string][]string{"nightly.yaml": claimed, "ci.yaml": {claimed[0], claimed[len(claimed)-1]}} {
		if got := matches(t, filepath.Join(".github/workflows", file), `"1\.(\d+)\.\d+"`); !slices.Equal(got, want) {
			t.Errorf("%s runs the tests on kind with Kubernetes 1.%v, want %v", file, got, want)
		}
	}
}
