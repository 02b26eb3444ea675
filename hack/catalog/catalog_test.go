package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
)

const (
	root = "../.."
	// images is where the bundles of the tests' releases are.
	images = "registry.example.com:5000/bundle:v"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// replace puts new in the place of old, which has to be there.
func replace(t *testing.T, file, old, new string) {
	t.Helper()
	content := read(t, file)
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s does not contain %q", file, old)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(content, []byte(old), []byte(new)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bundleOf writes the project's bundle into dir as if it were that of a version.
func bundleOf(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "bundle"))); err != nil {
		t.Fatal(err)
	}
	now, err := bundleVersion(dir)
	if err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "manifests/memcached-operator.clusterserviceversion.yaml")
	replace(t, csv, "name: memcached-operator.v"+now.String(), "name: memcached-operator.v"+version)
	replace(t, csv, "\n  version: "+now.String()+"\n", "\n  version: "+version+"\n")
}

// project is one that released versions, in this order.
func project(t *testing.T, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "catalog"), 0o700); err != nil {
		t.Fatal(err)
	}
	const none = "# A comment.\nschema: olm.semver\ngenerateMajorChannels: true\ncandidate:\n  bundles:\nstable:\n  bundles:\n"
	if err := os.WriteFile(filepath.Join(dir, templateFile), []byte(none), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		bundleOf(t, filepath.Join(dir, "bundle"), version)
		if err := run(t.Context(), []string{"--root", dir, "add", images + version}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rendered is the catalog of a project, in the form in which opm serves it.
func rendered(t *testing.T, dir string) *model.Package {
	t.Helper()
	if err := run(t.Context(), []string{"--root", dir, "render"}); err != nil {
		t.Fatal(err)
	}
	return loaded(t, filepath.Join(dir, configsDir))
}

func loaded(t *testing.T, dir string) *model.Package {
	t.Helper()
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := declcfg.ConvertToModel(*catalog)
	if err != nil {
		t.Fatal(err)
	}
	return packages[packageName]
}

// upgradesTo are the versions from which OLM upgrades straight to a version.
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

func TestCommittedCatalogIsUpToDate(t *testing.T) {
	want, err := render(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, configsDir, catalogFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what %s and %s give: run make catalog", configsDir, templateFile, releasesDir)
	}
}

// Of what was released, nothing is stranded: OLM has a way from each release to
// the newest one.
func TestCommittedCatalogUpgradesEveryRelease(t *testing.T) {
	versions, err := released(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	for _, name := range []string{releasesDir, templateFile} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "catalog"), os.DirFS(filepath.Join(root, "catalog"))); err != nil {
		t.Fatal(err)
	}
	// The next one too, so that there is always something to upgrade to.
	next := "1.0.0"
	if len(versions) > 0 {
		newest := versions[len(versions)-1]
		newest.Pre = nil
		if err := newest.IncrementMinor(); err != nil {
			t.Fatal(err)
		}
		next = newest.String()
	}
	bundleOf(t, filepath.Join(dir, "bundle"), next)
	if err := run(t.Context(), []string{"--root", dir, "add", images + next}); err != nil {
		t.Fatal(err)
	}
	catalog := rendered(t, dir)
	for name, channel := range catalog.Channels {
		head, err := channel.Head()
		if err != nil {
			t.Fatal(err)
		}
		if got := head.Name; got != packageName+".v"+next {
			t.Errorf("the head of %s is %s", name, got)
		}
		if got := upgradesTo(channel, next); len(got) != len(channel.Bundles)-1 {
			t.Errorf("in %s there is a way to %s only from %v", name, next, got)
		}
	}
}

func TestChannels(t *testing.T) {
	catalog := rendered(t, project(t, "1.0.0", "1.1.0-rc.1", "1.1.0"))
	if got := catalog.DefaultChannel.Name; got != "stable-v1" {
		t.Errorf("the default channel is %s", got)
	}
	if catalog.Icon == nil || catalog.Description == "" {
		t.Error("the package has no icon or no description")
	}
	for name, want := range map[string]int{"stable-v1": 2, "candidate-v1": 3} {
		if channel := catalog.Channels[name]; channel == nil || len(channel.Bundles) != want {
			t.Errorf("%s is %+v, want it to have %d bundles", name, channel, want)
		}
	}
	if len(catalog.Channels) != 2 {
		t.Errorf("the channels are %v", catalog.Channels)
	}
}

// olm.bundle.object would put every manifest into the catalog.
func TestBundlesHaveMetadataAndNoObjects(t *testing.T) {
	for name, bundle := range rendered(t, project(t, "1.0.0")).DefaultChannel.Bundles {
		var types []string
		for _, p := range bundle.Properties {
			types = append(types, p.Type)
		}
		slices.Sort(types)
		types = slices.Compact(types) // one olm.gvk for each kind
		if want := []string{"olm.csv.metadata", "olm.gvk", "olm.package"}; !slices.Equal(types, want) {
			t.Errorf("%s has the properties %v, want %v", name, types, want)
		}
	}
}

func TestUpgrades(t *testing.T) {
	for name, test := range map[string]struct {
		released []string
		// channel is where to look; want are the versions that each one replaces or skips.
		channel string
		want    map[string][]string
	}{
		"each release replaces the one before, and who skips one gets to the newest all the same": {
			[]string{"1.0.0", "1.1.0", "1.2.0"}, "stable-v1",
			map[string][]string{"1.0.0": nil, "1.1.0": {"1.0.0"}, "1.2.0": {"1.0.0", "1.1.0"}},
		},
		"a broken release is mended by the next patch: nobody is sent through it any more": {
			[]string{"1.0.0", "1.1.0", "1.1.1"}, "stable-v1",
			map[string][]string{"1.0.0": nil, "1.1.0": nil, "1.1.1": {"1.0.0", "1.1.0"}},
		},
		"a patch of an older release": {
			[]string{"1.0.0", "1.1.0", "1.0.1"}, "stable-v1",
			map[string][]string{"1.0.1": {"1.0.0"}, "1.1.0": {"1.0.0", "1.0.1"}},
		},
		"a candidate is replaced by its release": {
			[]string{"1.0.0", "1.1.0-rc.1", "1.1.0-rc.2", "1.1.0"}, "candidate-v1",
			map[string][]string{"1.1.0": {"1.0.0", "1.1.0-rc.1", "1.1.0-rc.2"}},
		},
		"who takes no candidates is offered none": {
			[]string{"1.0.0", "1.1.0-rc.1", "1.1.0"}, "stable-v1",
			map[string][]string{"1.1.0": {"1.0.0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			channel := rendered(t, project(t, test.released...)).Channels[test.channel]
			for version, want := range test.want {
				if got := upgradesTo(channel, version); !slices.Equal(got, want) {
					t.Errorf("%s comes after %v, want %v", version, got, want)
				}
			}
		})
	}
}

func TestAddKeepsTheTemplatesComments(t *testing.T) {
	got := string(read(t, filepath.Join(project(t, "1.0.0", "1.1.0-rc.1"), templateFile)))
	want := `# A comment.
schema: olm.semver
generateMajorChannels: true
candidate:
  bundles:
  - image: registry.example.com:5000/bundle:v1.0.0
  - image: registry.example.com:5000/bundle:v1.1.0-rc.1
stable:
  bundles:
  - image: registry.example.com:5000/bundle:v1.0.0
`
	if got != want {
		t.Errorf("the template is\n%swant\n%s", got, want)
	}
}

// Before the first release there is no catalog, and a project that has one to
// clean up loses it.
func TestNothingReleased(t *testing.T) {
	dir := project(t)
	if err := write(filepath.Join(dir, configsDir), []byte("stale")); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"--root", dir, "render"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, configsDir, catalogFile)); !os.IsNotExist(err) {
		t.Errorf("the catalog is still there: %v", err)
	}
}

func TestPreview(t *testing.T) {
	dir := t.TempDir()
	args := []string{"preview", "--out", filepath.Join(dir, "out")}
	for _, version := range []string{"1.1.0", "1.0.0"} {
		bundle := filepath.Join(dir, version)
		bundleOf(t, bundle, version)
		// No tag that says the version: tests call images as they like.
		args = append(args, "registry.example.com:5000/"+version+"@sha256:"+strings.Repeat("0", 64)+"="+bundle)
	}
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	catalog := loaded(t, filepath.Join(dir, "out"))
	for _, name := range []string{"stable-v1", "candidate-v1"} {
		if got, want := upgradesTo(catalog.Channels[name], "1.1.0"), []string{"1.0.0"}; !slices.Equal(got, want) {
			t.Errorf("in %s, 1.1.0 comes after %v, want %v", name, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	render := []string{"render"}
	for name, test := range map[string]struct {
		// file of a project that released 1.0.0 and 1.1.0-rc.1 has old replaced by new; without old, all of it is new.
		file, old, new string
		args           []string
		want           string
	}{
		"a release that has no folder": {
			templateFile, images + "1.0.0", images + "1.2.0", render,
			"lists " + images + "1.2.0, and there is no catalog/releases/1.2.0",
		},
		"a folder that the template does not list": {
			templateFile, "  - image: " + images + "1.0.0\n", "", render,
			"does not list the bundle of catalog/releases/1.0.0 in candidate",
		},
		"a candidate in stable": {
			templateFile, "stable:\n  bundles:\n", "stable:\n  bundles:\n  - image: " + images + "1.1.0-rc.1\n", render,
			"v1.1.0-rc.1 in stable: it belongs into candidate",
		},
		"a stream that is none of ours": {
			templateFile, "stable:", "fast:\n  bundles:\n  - image: " + images + "1.0.0\nstable:", render,
			"v1.0.0 in fast: it belongs into candidate and stable",
		},
		"an image whose tag says no version": {
			templateFile, images + "1.0.0", "bundle:latest", render, "lists bundle:latest: the tag of a release is v and its version",
		},
		"a misspelt key": {
			templateFile, "stable:", "stabel:", render, "stabel",
		},
		"a file of a release that was edited": {
			releasesDir + "/1.0.0/metadata/annotations.yaml", "stable-v1", "stable-v2", render,
			"not as released: 1.0.0/metadata/annotations.yaml",
		},
		"a file that a release did not have": {
			releasesDir + "/1.0.0/manifests/more.yaml", "", "kind: Secret", render, "not as released: 1.0.0/manifests/more.yaml",
		},
		"a checksum that is gone with its line": {
			releasesDir + "/checksums", "", "", render, "not as released: 1.0.0/manifests/",
		},
		"a release that was released before": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"add", images + "1.1.0-rc.1"}, "1.1.0-rc.1 is released already",
		},
		"an image of another version than the bundle's": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"add", images + "1.2.0"}, "its tag has to be v1.1.0-rc.1",
		},
		"a preview of no bundle": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"preview", "--out", "dir"}, "use: catalog",
		},
		"a preview of a folder without its image": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"preview", "--out", "dir", "bundle"}, `"bundle" is not IMAGE=BUNDLEDIR`,
		},
		"a preview of a folder that is no bundle": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"preview", "--out", "dir", "image=" + root + "/api"}, "reading the bundle in " + root + "/api",
		},
		"a preview of manifests without metadata": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"preview", "--out", "dir", "image=" + root + "/bundle/manifests"}, `is of the package "", not of memcached-operator`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, "1.0.0", "1.1.0-rc.1")
			file := filepath.Join(dir, test.file)
			if test.old != "" {
				replace(t, file, test.old, test.new)
			} else if err := os.WriteFile(file, []byte(test.new), 0o600); err != nil {
				t.Fatal(err)
			}
			err := run(t.Context(), append([]string{"--root", dir}, test.args...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}

// A folder that holds another version's bundle would be published under the
// wrong number.
func TestAFolderOfAnotherVersionIsRefused(t *testing.T) {
	dir := project(t, "1.0.0")
	if err := os.Rename(filepath.Join(dir, releasesDir, "1.0.0"), filepath.Join(dir, releasesDir, "1.5.0")); err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(dir, releasesDir, checksumsFile), "1.0.0/", "1.5.0/")
	const want = "catalog/releases/1.5.0 holds the bundle of 1.0.0"
	if _, err := render(t.Context(), dir); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q in it", err, want)
	}
}
