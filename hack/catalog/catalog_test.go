package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

const (
	root = "../.."
	// image is the name of the images of the tests' bundles.
	image = "registry.example.com:5000/bundle"
)

// project returns the folder of a project that released versions, each with the project's bundle.
func project(t *testing.T, versions ...string) string {
	t.Helper()
	now := bundle(t, filepath.Join(root, "bundle")).CSV.Spec.Version.String()
	dir := t.TempDir()
	for _, version := range versions {
		release := filepath.Join(dir, releasesDir, version)
		must.Succeed(t, os.CopyFS(release, os.DirFS(filepath.Join(root, "bundle"))))
		csv := filepath.Join(release, "manifests/memcached-operator.clusterserviceversion.yaml")
		text := strings.ReplaceAll(string(must.Read(t, csv)), "name: memcached-operator.v"+now, "name: memcached-operator.v"+version)
		text = strings.ReplaceAll(text, "\n  version: "+now+"\n", "\n  version: "+version+"\n")
		must.Succeed(t, os.WriteFile(csv, []byte(text), 0o600))
	}
	return dir
}

func bundle(t *testing.T, dir string) *manifests.Bundle {
	t.Helper()
	b, err := manifests.GetBundleFromDir(dir)
	must.Succeed(t, err)
	return b
}

// rendered returns the catalog of a project, in the form in which opm serves it.
func rendered(t *testing.T, dir string) *model.Package {
	t.Helper()
	content, err := render(t.Context(), dir, image)
	must.Succeed(t, err)
	catalog, err := declcfg.LoadReader(bytes.NewReader(content))
	must.Succeed(t, err)
	packages, err := declcfg.ConvertToModel(*catalog)
	must.Succeed(t, err)
	return packages[packageName]
}

// upgradesTo returns the versions that OLM upgrades to a version in one step.
func upgradesTo(channel *model.Channel, version string) []string {
	bundle := channel.Bundles[packageName+".v"+version]
	var from []string
	for _, name := range append([]string{bundle.Replaces}, bundle.Skips...) {
		if name != "" {
			from = append(from, strings.TrimPrefix(name, packageName+".v"))
		}
	}
	slices.Sort(from)
	return from
}

// A release replaces the one before and skips the older ones. A candidate is in its own channel, and its release replaces it.
func TestChannels(t *testing.T) {
	catalog := rendered(t, project(t, "1.0.0", "1.1.0-rc.1", "1.1.0", "1.2.0"))
	if got := catalog.DefaultChannel.Name; got != "stable-v1" || catalog.Icon == nil || catalog.Description == "" || len(catalog.Channels) != 2 {
		t.Errorf("the package is %+v", catalog)
	}
	for name, want := range map[string][]string{"stable-v1": {"1.0.0", "1.1.0"}, "candidate-v1": {"1.0.0", "1.1.0", "1.1.0-rc.1"}} {
		if got := upgradesTo(catalog.Channels[name], "1.2.0"); !slices.Equal(got, want) {
			t.Errorf("in %s, 1.2.0 comes after %v, want %v", name, got, want)
		}
	}
}

// SECURITY.md supports the latest minor release.
func TestReleasesWithoutFixesAreDeprecated(t *testing.T) {
	for releases, want := range map[string]string{
		"1.0.0-rc.1": "", "1.0.0 1.0.1": "",
		"1.0.0-rc.1 1.0.0 1.1.0-rc.1 1.1.0 1.1.1 1.2.0-rc.1": "1.0.0-rc.1 1.0.0 1.1.0-rc.1",
	} {
		channel := rendered(t, project(t, strings.Fields(releases)...)).Channels["candidate-v1"]
		var got []string
		for release := range strings.FieldsSeq(releases) {
			if deprecation := channel.Bundles[packageName+".v"+release].Deprecation; deprecation != nil {
				got = append(got, release)
				if want := "Upgrade to 1.1."; !strings.Contains(deprecation.Message, want) {
					t.Errorf("the deprecation of %s says %q, want %q in it", release, deprecation.Message, want)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("of %s, %q are deprecated, want %s", releases, got, want)
		}
	}
}

// The repositories of OperatorHub render a template, to which their pipeline adds each release as its release-config.yaml
// says (add_bundle_to_fbc.py of operator-pipelines). A template that exists keeps its settings.
func TestTheHubsGetOurCatalog(t *testing.T) {
	dir := project(t, "1.0.0", "1.1.0-rc.1", "1.1.0", "1.2.0-rc.1")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "catalog", ciFile), []byte("reviewers: [me]\n"), 0o600))
	versions, err := released(dir)
	must.Succeed(t, err)
	parse := func(file string, into any) {
		t.Helper()
		must.Succeed(t, yaml.UnmarshalStrict(must.Read(t, file), into))
	}
	operator := filepath.Join(dir, "dist/community-operators/operators", packageName)
	bundles := map[string]string{}
	var merged map[string]any
	for _, version := range versions {
		must.Succeed(t, hubs(dir, filepath.Join(dir, "dist"), version))
		if merged == nil {
			parse(filepath.Join(operator, "catalog-templates", templateFile), &merged)
		}
		image := image + ":v" + version.String()
		bundles[image] = filepath.Join(dir, releasesDir, version.String())
		var config struct {
			Templates []struct {
				Name     string   `json:"template_name"`
				Channels []string `json:"channels"`
			} `json:"catalog_templates"`
		}
		parse(filepath.Join(operator, version.String(), "release-config.yaml"), &config)
		if len(config.Templates) != 1 || config.Templates[0].Name != templateFile {
			t.Fatalf("%s is released to %+v", version, config)
		}
		for _, channel := range config.Templates[0].Channels {
			stream, found := merged[channel].(map[string]any)
			if !found {
				stream = map[string]any{"Bundles": []any{}}
				merged[channel] = stream
			}
			stream["Bundles"] = append(stream["Bundles"].([]any), map[string]any{"Image": image})
		}
	}
	theirs, err := catalogOf(t.Context(), bundles, merged, deprecations(versions))
	must.Succeed(t, err)
	if ours, err := render(t.Context(), dir, image); err != nil || !bytes.Equal(ours, theirs) {
		t.Errorf("%v: our catalog is\n%s\nthe hubs' is\n%s", err, ours, theirs)
	}
}

func TestTheHubsMapTheTemplateToTheirCatalogs(t *testing.T) {
	dir := project(t, "1.0.0")
	for reviewers, want := range map[string]string{"reviewers: []\n": "", "reviewers: [me]\n": "reviewers:\n- me\n"} {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, "catalog", ciFile), []byte(reviewers), 0o600))
		must.Succeed(t, hubs(dir, filepath.Join(dir, "dist"), semver.MustParse("1.0.0")))
		for repository, catalogs := range map[string]string{
			"community-operators":      "    - latest\n",
			"community-operators-prod": "    - v4.16\n    - v4.17\n    - v4.18\n    - v4.19\n    - v4.20\n    - v4.21\n    - v4.22\n",
		} {
			want := "fbc:\n  catalog_mapping:\n  - catalog_names:\n" + catalogs +
				"    template_name: semver.yaml\n    type: olm.semver\n  enabled: true\n  version_promotion_strategy: always\n" + want
			if got := string(must.Read(t, filepath.Join(dir, "dist", repository, "operators", packageName, ciFile))); got != want {
				t.Errorf("ci.yaml of %s is\n%swant\n%s", repository, got, want)
			}
		}
	}
	line := "com.redhat.openshift.versions: " + openshift[0] + "\n"
	if annotations := must.Read(t, filepath.Join(root, "bundle/metadata/annotations.yaml")); !bytes.Contains(annotations, []byte(line)) {
		t.Errorf("bundle/ has no annotation %s", line)
	}
}

// "make release" adds the checksums of a release. A release never changes.
func TestReleasesAreAsReleased(t *testing.T) {
	compare := exec.Command("bash", "-c", "diff <(sort checksums) <(find . -mindepth 2 -type f -printf '%P\\n' | xargs -r sha256sum | sort)")
	compare.Dir = filepath.Join(root, releasesDir)
	if out, err := compare.CombinedOutput(); err != nil {
		t.Errorf("%v: restore these files with git checkout catalog, and release a new version\n%s", err, out)
	}
}
