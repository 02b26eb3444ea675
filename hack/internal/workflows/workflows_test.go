// Package workflows verifies that the workflows test the Kubernetes versions that the ClusterServiceVersion claims.
package workflows

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

const root = "../../.."

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// kindVersions returns the Kubernetes versions with which a workflow calls the tests on kind.
func kindVersions(t *testing.T, file string) []semver.Version {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			With struct {
				Versions string `json:"versions"`
			} `json:"with"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(".github/workflows", file))), &workflow); err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal([]byte(workflow.Jobs["kind"].With.Versions), &texts); err != nil {
		t.Fatalf("%s: the versions are no JSON: %v", file, err)
	}
	var versions []semver.Version
	for _, text := range texts {
		versions = append(versions, semver.MustParse(text))
	}
	return versions
}

// The ClusterServiceVersion claims all minor versions from minKubeVersion to that of the Kubernetes libraries.
func TestKindHasTheKubernetesVersionsThatAreClaimed(t *testing.T) {
	var csv struct {
		Spec struct {
			MinKubeVersion string `json:"minKubeVersion"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "config/manifests/bases/memcached-operator.clusterserviceversion.yaml")), &csv); err != nil {
		t.Fatal(err)
	}
	oldest := semver.MustParse(csv.Spec.MinKubeVersion).Minor
	library := regexp.MustCompile(`(?m)^\tk8s\.io/api v0\.([0-9]+)\.`).FindStringSubmatch(read(t, "go.mod"))
	if library == nil {
		t.Fatal("go.mod has no k8s.io/api")
	}
	newest, err := strconv.ParseUint(library[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	minors := func(versions []semver.Version) (out []string) {
		for _, v := range versions {
			out = append(out, fmt.Sprintf("%d.%d", v.Major, v.Minor))
		}
		return out
	}
	var want []string
	for minor := oldest; minor <= newest; minor++ {
		want = append(want, fmt.Sprintf("1.%d", minor))
	}
	if got := minors(kindVersions(t, "nightly.yaml")); !slices.Equal(got, want) {
		t.Errorf("the nightly run has Kubernetes %v, want %v", got, want)
	}
	if got := minors(kindVersions(t, "ci.yaml")); !slices.Equal(got, []string{want[0], want[len(want)-1]}) {
		t.Errorf("a pull request is tested with Kubernetes %v, want the oldest and the newest of %v", got, want)
	}
	for _, file := range []string{"ci.yaml", "nightly.yaml"} {
		for _, v := range kindVersions(t, file) {
			if len(v.Pre) > 0 {
				t.Errorf("%s has %s, which is not released", file, v)
			}
		}
	}
}
