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
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Join(dir, configsDir)))
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

func TestCommittedCatalogIsUpToDate(t *testing.T) {
	base := regexp.MustCompile(`(?m)^IMAGE_TAG_BASE \?= (.*)$`).FindSubmatch(read(t, filepath.Join(root, "Makefile")))
	want, err := render(t.Context(), root, string(base[1])+"-bundle")
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
		"a checksum without a release": {
			releasesDir + "/checksums", "1.0.0 ", "0.9.0 h1:0\n1.0.0 ", render, "checksums lists a release that is missing",
		},
		"a release of the same version": {
			"bundle/metadata/annotations.yaml", "", "annotations: {}", []string{"add"}, "1.1.0-rc.1 is released already",
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
