package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/model"
)

const (
	root = "../.."
	// image is the name of the images of the tests' bundles.
	image = "registry.example.com:5000/bundle"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// replace replaces old, which the file must contain.
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

// bundleOf writes the project's bundle into dir as the bundle of a version.
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

// project returns the folder of a project that released versions, in this order.
func project(t *testing.T, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, version := range versions {
		bundleOf(t, filepath.Join(dir, "bundle"), version)
		if err := run(t.Context(), []string{"--root", dir, "add"}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// rendered returns the catalog of a project, in the form in which opm serves it.
func rendered(t *testing.T, dir string) *model.Package {
	t.Helper()
	if err := run(t.Context(), []string{"--root", dir, "render", image}); err != nil {
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

// bundleImage is the name of the bundles' images in the Makefile.
func bundleImage(t *testing.T) string {
	t.Helper()
	match := regexp.MustCompile(`(?m)^IMAGE_TAG_BASE \?= (.*)$`).FindSubmatch(read(t, filepath.Join(root, "Makefile")))
	if match == nil {
		t.Fatal("the Makefile does not set IMAGE_TAG_BASE")
	}
	return string(match[1]) + "-bundle"
}

func TestCommittedCatalogIsUpToDate(t *testing.T) {
	want, err := render(t.Context(), root, bundleImage(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, configsDir, catalogFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what %s gives: run make catalog", configsDir, releasesDir)
	}
}

// OLM can upgrade every release to the newest one.
func TestCommittedCatalogUpgradesEveryRelease(t *testing.T) {
	versions, err := released(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t)
	if err := os.CopyFS(filepath.Join(dir, "catalog"), os.DirFS(filepath.Join(root, "catalog"))); err != nil {
		t.Fatal(err)
	}
	// Adds the next release, so that there is always one to upgrade to.
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
	if err := run(t.Context(), []string{"--root", dir, "add"}); err != nil {
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
			t.Errorf("%s upgrades to %s only from %v", name, next, got)
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

// Properties olm.bundle.object would put every manifest into the catalog.
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
		"each release replaces the one before and skips the older ones": {
			[]string{"1.0.0", "1.1.0", "1.2.0"}, "stable-v1",
			map[string][]string{"1.0.0": nil, "1.1.0": {"1.0.0"}, "1.2.0": {"1.0.0", "1.1.0"}},
		},
		"a patch skips the broken release": {
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
		"candidates are not in the stable channel": {
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

func TestNoCatalogBeforeTheFirstRelease(t *testing.T) {
	dir := project(t)
	if err := write(filepath.Join(dir, configsDir), []byte("stale")); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"--root", dir, "render", image}); err != nil {
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
		// The image need not be tagged with the version.
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

func TestCatalogRejects(t *testing.T) {
	render := []string{"render", image}
	for name, test := range map[string]struct {
		// file of a project that released 1.0.0 and 1.1.0-rc.1 has old replaced by new; without old, all of it is new.
		file, old, new string
		args           []string
		want           string
	}{
		"an edited file of a release": {
			releasesDir + "/1.0.0/metadata/annotations.yaml", "stable-v1", "stable-v2", render,
			"catalog/releases/1.0.0 is not as released",
		},
		"an added file of a release": {
			releasesDir + "/1.0.0/tests/more.yaml", "", "kind: Secret", render, "catalog/releases/1.0.0 is not as released",
		},
		"a release without a checksum": {
			releasesDir + "/checksums", "", "", render, "catalog/releases/1.0.0 is not as released",
		},
		"a checksum without a release": {
			releasesDir + "/checksums", "1.0.0 ", "0.9.0 h1:0\n1.0.0 ", render, "checksums lists a release that is missing",
		},
		"a release of the same version": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"add"}, "1.1.0-rc.1 is released already",
		},
		"a preview without a bundle": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"preview", "--out", "dir"}, "usage: catalog",
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

func TestFolderOfAnotherVersionIsRejected(t *testing.T) {
	dir := project(t, "1.0.0")
	if err := os.Rename(filepath.Join(dir, releasesDir, "1.0.0"), filepath.Join(dir, releasesDir, "1.5.0")); err != nil {
		t.Fatal(err)
	}
	const want = "catalog/releases/1.5.0 contains the bundle of 1.0.0"
	if _, err := render(t.Context(), dir, image); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %q in it", err, want)
	}
}
