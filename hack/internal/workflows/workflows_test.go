// Package workflows verifies that the workflows test the Kubernetes versions that the ClusterServiceVersion claims, what the
// rights of their jobs are, and in which order a release is published.
package workflows

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

// matches returns what the group of an expression matches in a file, at least once.
func matches(t *testing.T, file, expression string) (all []string) {
	t.Helper()
	content := must.Read(t, filepath.Join("../../..", file))
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
	Permissions map[string]string
	Steps       []struct {
		Uses, Run        string
		With             map[string]any
		WorkingDirectory string `json:"working-directory"`
	}
}

type workflow struct {
	Permissions map[string]string
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
		content := must.Read(t, file)
		var w workflow
		if err := yaml.Unmarshal(content, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = w
	}
	return all
}

// writes reports whether permissions contain a right to write.
func writes(permissions map[string]string) bool {
	return slices.Contains(slices.Collect(maps.Values(permissions)), "write")
}

// A dependency that was taken over must not publish anything.
func TestJobsWithRightsRunNoCodeOfTheProject(t *testing.T) {
	runsCode := regexp.MustCompile(`(?m)(^|[\s;&|(])(make|go|npm|hack/\S+|docker (buildx )?build)\s`)
	privileged := 0
	for file, w := range workflows(t) {
		if w.Permissions == nil || writes(w.Permissions) { // without any, GitHub's default can have them all
			t.Errorf("%s gives rights to all of its jobs", file)
		}
		for name, j := range w.Jobs {
			may := writes(j.Permissions)
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

func TestReleasesComeFromMain(t *testing.T) {
	for name, j := range workflows(t)["release.yaml"].Jobs {
		if j.Needs == nil && j.If != "github.ref == 'refs/heads/main'" {
			t.Errorf("the job %s runs on other branches", name)
		}
		for _, step := range j.Steps {
			if strings.HasPrefix(step.Uses, "actions/setup-go@") && step.With["cache"] != false {
				t.Errorf("the job %s reads a cache that other workflows write", name)
			}
		}
	}
}

// programs are those that the jobs call. They stop when they would do something that GitHub or the registry rejects, or when
// releases/latest names a release without one of the files in $FILES, which users download from there.
const programs = `#!/bin/bash
set -euo pipefail
echo "${0##*/} $*" >> "$STATE/calls"
case "${0##*/} $1 ${2:-}" in
"gh run download") mkdir release && cp -R "$STATE/built/." release ;;
"gh release view") [ -s "$STATE/release" ] ;;
"gh release create") [ ! -s "$STATE/release" ]; git -C "$STATE/origin" rev-parse -q --verify "$3"; case "$*" in *--draft*) echo draft ;; *) echo latest ;; esac > "$STATE/release" ;;
"gh release edit") case "$*" in *"--draft=false --latest") echo latest > "$STATE/release" ;; esac ;;
"gh release upload")
	for file in "${@:4}"; do
		case "$file" in --clobber) ;; --*) break ;; *)
			[ -e "$file" ]; [[ ! -e "$STATE/assets/${file##*/}" || "$*" == *--clobber* ]]; cp "$file" "$STATE/assets" ;;
		esac
	done ;;
"skopeo copy "*) case "$*" in *"--digestfile digest"*) echo sha256:12 > digest ;; esac ;;
"cosign sign-blob "*) [ -e "$5" ]; touch "$4" ;;
esac
if grep -q latest "$STATE/release"; then (cd "$STATE/assets"; ls $FILES); fi
`

// Each job runs until its end, and then again, as after a failure of its last step.
func TestReleaseIsLatestWhenItIsCompleteAndItsJobsCanRunAgain(t *testing.T) {
	release, manifest, state := workflows(t)["release.yaml"], matches(t, "README.md", `releases/latest/download/(\S+)`)[0], t.TempDir()
	plugin := []string{"memcached.yaml", "kubectl-memcached_linux_amd64.tar.gz", "kubectl-memcached_windows_arm64.tar.gz", "kubectl-memcached_checksums.txt"}
	assets := append(slices.Clone(plugin), manifest, manifest+".sigstore.json", "kubectl-memcached_checksums.txt.sigstore.json")
	built, origin, source := state+"/built", state+"/origin", state+"/source"
	for name, value := range map[string]string{
		"STATE": state, "FILES": strings.Join(assets, " "), "GITHUB_REPOSITORY": "a/b", "GITHUB_ACTOR": "a", "GITHUB_RUN_ID": "1", "GITHUB_OUTPUT": state + "/outputs", "VERSION": "1.1.0",
		"IMAGE": "ghcr.io/a/b", "CHART": "ghcr.io/a/charts/b", "GH_TOKEN": "t", "SUBJECT": "ghcr.io/a/b@sha256:12", "SUBJECT_NAME": "ghcr.io/a/b",
		"IMAGES": `[{"name": "ghcr.io/a/b-catalog", "digest": "sha256:12"}]`, "PATH": state + "/bin:" + os.Getenv("PATH"),
		"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url." + origin + ".insteadOf", "GIT_CONFIG_VALUE_0": "https://github.com/a/b",
	} {
		t.Setenv(name, value)
	}
	for _, dir := range []string{built, source, state + "/bin", state + "/assets"} {
		must.Succeed(t, os.Mkdir(dir, 0o700))
	}
	for _, name := range []string{"gh", "skopeo", "cosign", "helm", "oras", "docker"} {
		must.Succeed(t, os.WriteFile(filepath.Join(state, "bin", name), []byte(programs), 0o700))
	}
	must.Run(t, source, "git", "init", "-q", "-b", "main")
	must.Run(t, source, "git", "commit", "-q", "--allow-empty", "-m", "before")
	must.Run(t, state, "git", "clone", "-q", "--bare", source, origin)
	must.Run(t, source, "git", "commit", "-q", "--allow-empty", "-m", "Release 1.1.0")
	must.Run(t, source, "git", "tag", "-a", "v1.1.0", "-m", "Release 1.1.0")
	must.Run(t, source, "git", "bundle", "create", built+"/commit.bundle", "HEAD~1..HEAD", "v1.1.0")
	must.Run(t, built, "touch", append(plugin, manifest, "notes.md", "artifacthub-repo.yml", state+"/release")...)

	order := []string{"publish", "attest", "chart", "latest"}
	if first := release.Jobs[order[0]]; len(release.Jobs) != len(order)+1 || first.Needs != "build" {
		t.Fatalf("the workflow has %d jobs, of which this test runs %q after build; the first waits for %v", len(release.Jobs), order, first.Needs)
	}
	for i, name := range order {
		for _, before := range order[:i] {
			if !strings.Contains(fmt.Sprint(release.Jobs[name].Needs), before) {
				t.Errorf("the job %s doesn't wait for %s", name, before)
			}
		}
		for range 2 {
			dir := t.TempDir()
			for _, step := range release.Jobs[name].Steps {
				script := step.Run
				if strings.HasPrefix(step.Uses, "anchore/sbom-action@") {
					script = "touch sbom.spdx.json"
				}
				must.Run(t, filepath.Join(dir, step.WorkingDirectory), "bash", "-e", "-c", script)
			}
			if name == "publish" { // main gets another commit before the job runs again
				must.Run(t, state, "git", "clone", "-q", origin, dir+"/other")
				must.Run(t, dir+"/other", "git", "commit", "-q", "--allow-empty", "-m", "later")
				must.Run(t, dir+"/other", "git", "push", "-q", "origin", "main")
			}
		}
	}
	calls := must.Read(t, state+"/calls")
	if got := must.Run(t, state, "cat", "release"); got != "latest" {
		t.Errorf("the release is %s", got)
	}
	if signed, catalog := strings.LastIndex(string(calls), "cosign "), strings.Index(string(calls), "catalog:latest"); signed < 0 || catalog < signed {
		t.Errorf("the catalog is published before all is signed:\n%s", calls)
	}
}
