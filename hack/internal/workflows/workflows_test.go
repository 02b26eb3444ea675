// Package workflows verifies that the workflows test the Kubernetes versions that the ClusterServiceVersion claims, and what
// the rights of their jobs are.
package workflows

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
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

// job is what these tests read of a job.
type job struct {
	If          string
	Needs       any
	Environment any
	Permissions any
	Steps       []struct {
		Uses, Run string
		With      map[string]any
	}
}

type workflow struct {
	Permissions any
	Jobs        map[string]job
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob("../../../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string]workflow{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(content, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = w
	}
	return all
}

// writes reports whether permissions contain a right to write. Without any, GitHub's default can have them all.
func writes(permissions any) bool {
	rights, ok := permissions.(map[string]any)
	if !ok {
		return true
	}
	for _, right := range rights {
		if right == "write" {
			return true
		}
	}
	return false
}

// A dependency that was taken over must not publish anything.
func TestJobsWithRightsRunNoCodeOfTheProject(t *testing.T) {
	runsCode := regexp.MustCompile(`(?m)(^|[\s;&|(])(make|go|npm|hack/\S+|docker (buildx )?build)\s`)
	privileged := 0
	for file, w := range workflows(t) {
		if writes(w.Permissions) {
			t.Errorf("%s gives rights to all of its jobs", file)
		}
		for name, j := range w.Jobs {
			may := j.Permissions != nil && writes(j.Permissions)
			if may {
				privileged++
				if j.Environment == nil {
					t.Errorf("%s: the job %s has rights in no environment, so that nothing asks for a review", file, name)
				}
			}
			for _, step := range j.Steps {
				isCheckout := strings.HasPrefix(step.Uses, "actions/checkout@")
				if isCheckout && step.With["persist-credentials"] != false {
					t.Errorf("%s: the job %s leaves its token in the clone", file, name)
				}
				if may && (isCheckout || strings.HasPrefix(step.Uses, "actions/setup-go@") || runsCode.MatchString(step.Run)) {
					t.Errorf("%s: the job %s has rights and runs code: %s%s", file, name, step.Uses, step.Run)
				}
			}
		}
	}
	if privileged == 0 || !runsCode.MatchString("  make release VERSION=1.0.0") || !runsCode.MatchString("cd hack && go run .") {
		t.Errorf("%d jobs have rights", privileged)
	}
}

func TestReleasesComeFromMainAndTheCatalogIsLast(t *testing.T) {
	release := workflows(t)["release.yaml"]
	latest := ""
	for name, j := range release.Jobs {
		if j.Needs == nil && j.If != "github.ref == 'refs/heads/main'" {
			t.Errorf("the job %s runs on other branches", name)
		}
		for _, step := range j.Steps {
			if strings.HasPrefix(step.Uses, "actions/setup-go@") && step.With["cache"] != false {
				t.Errorf("the job %s reads a cache that other workflows write", name)
			}
			if strings.Contains(step.Run, "catalog:latest") {
				latest += name
			}
		}
	}
	needs, _ := release.Jobs[latest].Needs.([]any)
	if !slices.Contains(needs, any("attest")) {
		t.Errorf("the job %q publishes the catalog before the images are signed", latest)
	}
}
