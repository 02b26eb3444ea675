// Package workflows verifies what the files in .github say of the rest of the project. The workflows themselves run on
// GitHub only; "make test-workflows" checks their form.
package workflows

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// all returns the contents of the workflows, by file name.
func all(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("there are %d workflows: %v", len(files), err)
	}
	out := map[string]string{}
	for _, file := range files {
		out[filepath.Base(file)] = read(t, filepath.Join(".github/workflows", filepath.Base(file)))
	}
	return out
}

// foldersWith returns the folders that contain a file of this name, as dependabot writes them.
func foldersWith(t *testing.T, name string) (folders []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || slices.Contains([]string{".git", "bin", "dist"}, path)) {
			return fs.SkipDir
		}
		if entry.Name() == name {
			folders = append(folders, "/"+strings.TrimPrefix(filepath.Dir(path), "."))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(folders)
	return folders
}

func TestDependabotUpdatesEveryModuleAndDockerfile(t *testing.T) {
	var file struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &file); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, update := range file.Updates {
		got[update.Ecosystem] = slices.Sorted(slices.Values(update.Directories))
	}
	for ecosystem, want := range map[string][]string{
		"gomod": foldersWith(t, "go.mod"), "docker": foldersWith(t, "Dockerfile"), "github-actions": {"/"},
	} {
		if !slices.Equal(got[ecosystem], want) {
			t.Errorf("dependabot updates %s in %q, want %q", ecosystem, got[ecosystem], want)
		}
	}
}

// A tag can be moved to other code, a commit can't.
func TestActionsArePinnedByCommit(t *testing.T) {
	use := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	versions := map[string]string{}
	for file, content := range all(t) {
		for _, match := range use.FindAllStringSubmatch(content, -1) {
			if strings.HasPrefix(match[1], "./") {
				continue
			}
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s uses %s, want OWNER/NAME@COMMIT # vVERSION", file, match[1])
			}
			name, version, _ := strings.Cut(match[1], "@")
			if other, found := versions[name]; found && other != version {
				t.Errorf("%s uses %s at %s, another workflow at %s", file, name, version, other)
			}
			versions[name] = version
		}
	}
	if len(versions) < 5 {
		t.Errorf("the workflows use only %d actions", len(versions))
	}
}

func TestWorkflowsRunTargetsOfTheMakefile(t *testing.T) {
	run := regexp.MustCompile(`\bmake ([a-z0-9 -]+)`)
	makefile := read(t, "Makefile")
	ran := map[string]bool{}
	for file, content := range all(t) {
		for line := range strings.Lines(content) {
			code, _, _ := strings.Cut(line, "#")
			for _, match := range run.FindAllStringSubmatch(code, -1) {
				for target := range strings.FieldsSeq(match[1]) {
					ran[target] = true
					if !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile) {
						t.Errorf("%s runs make %s, which the Makefile doesn't have", file, target)
					}
				}
			}
		}
	}
	for _, target := range []string{
		"test-lint", "test", "test-race", "test-vulnerabilities", "test-all", "test-e2e", "soak", "fuzz", "mutants", "release", "docs-site",
	} {
		if !ran[target] {
			t.Errorf("no workflow runs make %s", target)
		}
	}
}

// Ubuntu doesn't have the keys of Debian's archive, from which the tests get memcached.
func TestJobsWithDebianPackagesInstallTheKeys(t *testing.T) {
	needs := regexp.MustCompile(`\bmake (test|test-all|test-process|test-host|demo)$`)
	found := 0
	for file, content := range all(t) {
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Run string `json:"run"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		if err := yaml.Unmarshal([]byte(content), &workflow); err != nil {
			t.Fatal(err)
		}
		for name, job := range workflow.Jobs {
			installed := false
			for _, step := range job.Steps {
				installed = installed || strings.Contains(step.Run, "apt-get install -qy debian-archive-keyring")
				if !needs.MatchString(step.Run) {
					continue
				}
				found++
				if !installed {
					t.Errorf("%s: the job %s runs %q without the package debian-archive-keyring", file, name, step.Run)
				}
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d steps need Debian packages", found)
	}
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
	if err := yaml.Unmarshal([]byte(all(t)[file]), &workflow); err != nil {
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
