package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
)

const root = "../.."

// loaded is the committed catalog.
func loaded(t *testing.T) *declcfg.DeclarativeConfig {
	t.Helper()
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Join(root, configsDir)))
	if err != nil {
		t.Fatal(err)
	}
	return catalog
}

// newest is the bundle image at the head of the default channel.
func newest(t *testing.T, catalog *declcfg.DeclarativeConfig) string {
	t.Helper()
	channel := catalog.Channels[slices.IndexFunc(catalog.Channels, func(c declcfg.Channel) bool { return c.Name == catalog.Packages[0].DefaultChannel })]
	head := channel.Entries[len(channel.Entries)-1].Name
	return catalog.Bundles[slices.IndexFunc(catalog.Bundles, func(b declcfg.Bundle) bool { return b.Name == head })].Image
}

func TestCommittedCatalogIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile(filepath.Join(root, catalogFile))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := render(t.Context(), root, newest(t, loaded(t)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(committed, rendered) {
		t.Errorf("%s is not what its template and bundle/ give: run make catalog", catalogFile)
	}
}

func TestCommittedCatalogIsValid(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, catalogFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(content); err != nil {
		t.Error(err)
	}
	catalog := loaded(t)
	if got := catalog.Packages[0].DefaultChannel; got != "stable-v1" {
		t.Errorf("the default channel is %s", got)
	}
	if catalog.Packages[0].Icon == nil || catalog.Packages[0].Description == "" {
		t.Error("the package has no icon or no description")
	}
	for _, bundle := range catalog.Bundles {
		var types []string
		for _, p := range bundle.Properties {
			types = append(types, p.Type)
		}
		if slices.Contains(types, "olm.bundle.object") || !slices.Contains(types, "olm.csv.metadata") {
			t.Errorf("%s has the properties %v", bundle.Name, types)
		}
	}
}

// copied is a project with the committed bundle and catalog and the template
// given.
func copied(t *testing.T, template string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bundle", configsDir} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog/template.yaml"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A release that was published is kept, and the next one replaces it.
func TestNextRelease(t *testing.T) {
	const next = "registry.example.com/bundle:v1.1.0"
	published := newest(t, loaded(t))
	dir := copied(t, "schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: "+published+"\n  - image: "+next+"\n")
	file := filepath.Join(dir, "bundle/manifests/memcached-operator.clusterserviceversion.yaml")
	csv, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := loaded(t).Bundles[0].Name
	version := strings.TrimPrefix(name, "memcached-operator.v")
	csv = bytes.ReplaceAll(csv, []byte("name: "+name), []byte("name: memcached-operator.v1.1.0"))
	csv = bytes.ReplaceAll(csv, []byte("version: "+version), []byte("version: 1.1.0"))
	if err := os.WriteFile(file, csv, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), dir, next); err != nil {
		t.Fatal(err)
	}
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(filepath.Join(dir, configsDir)))
	if err != nil {
		t.Fatal(err)
	}
	entries := catalog.Channels[0].Entries
	if len(entries) != 2 || entries[1].Name != "memcached-operator.v1.1.0" || entries[1].Replaces != name {
		t.Errorf("the channel %s is %+v", catalog.Channels[0].Name, entries)
	}
}

func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"the bundle at hand is not listed": {
			"schema: olm.semver\nstable:\n  bundles:\n  - image: other\n", "lists no bundle this",
		},
		"a release that nobody has": {
			"schema: olm.semver\ngenerateMajorChannels: true\nstable:\n  bundles:\n  - image: this\n  - image: other\n", "other is neither the one at hand nor in the catalog",
		},
		"a misspelt key": {"schema: olm.semver\nstabel: {}\n", "stabel"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t.Context(), copied(t, test.template), "this")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}
