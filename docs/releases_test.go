package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const memcachedCRD = "cache.memcached-operator.io_memcacheds.yaml"

// fieldsOf returns the paths of the fields of the CRD in a file, such as spec.tls.mode, and the values of enums, such
// as spec.tls.mode: Required.
func fieldsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(read(t, file)), &crd); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	var add func(path string, schema *apiextensionsv1.JSONSchemaProps)
	add = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		fields[path] = true
		for _, value := range schema.Enum {
			fields[path+": "+strings.Trim(string(value.Raw), `"`)] = true
		}
		for name, field := range schema.Properties {
			add(path+"."+name, &field)
		}
	}
	for _, part := range []string{"spec", "status"} {
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]
		add(part, &schema)
	}
	return fields
}

// releases returns the releases, the oldest first, without candidates.
func releases(t *testing.T) []semver.Version {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS(root), "catalog/releases")
	if err != nil {
		t.Fatal(err)
	}
	var all []semver.Version
	for _, entry := range entries {
		version, err := semver.Parse(entry.Name())
		if err == nil && len(version.Pre) == 0 {
			all = append(all, version)
		}
	}
	slices.SortFunc(all, semver.Version.Compare)
	return all
}

func fieldsOfRelease(t *testing.T, version semver.Version) map[string]bool {
	t.Helper()
	return fieldsOf(t, path.Join("catalog/releases", version.String(), "manifests", memcachedCRD))
}

// required is the note of a section about what older releases lack.
var required = regexp.MustCompile(`[Rr]equires\s+release\s+(\d+\.\d+\.\d+)\s+or\s+newer`)

// opening returns the text below a heading up to the next heading. Without an anchor, the heading is the document's.
func opening(document, anchor string) string {
	seen := map[string]bool{}
	var text strings.Builder
	on := anchor == ""
	for i, line := range strings.Split(document, "\n") {
		if heading.MatchString(line) {
			if on && i > 0 {
				break
			}
			for found := range anchors(line) {
				on = on || found == anchor && !seen[found]
				seen[found] = true
			}
			continue
		}
		if on {
			text.WriteString(line + "\n")
		}
	}
	return text.String()
}

// specField and setting are what a section about a release names: a field, or a setting of the operator.
var (
	specField = regexp.MustCompile("`(spec\\.[a-zA-Z.]+(?:: [A-Z][A-Za-z]+)?)`")
	setting   = regexp.MustCompile("`([A-Z][A-Z_]+)`")
)

// noted returns the releases that sections require, by the groups of fields and the settings that these sections name.
func noted(t *testing.T) map[string]string {
	releases := map[string]string{}
	for document, text := range markdown(t) {
		if document == "docs/api.md" || strings.HasPrefix(document, "docs/adr/") {
			continue
		}
		_, prose := split(document, text)
		parts := heading.Split(prose, -1)
		if required.MatchString(opening(prose, "")) { // about the whole page
			parts = []string{prose}
		}
		for _, part := range parts {
			note := required.FindStringSubmatch(part)
			if note == nil {
				continue
			}
			for _, match := range specField.FindAllStringSubmatch(part, -1) {
				name, _, _ := strings.Cut(strings.TrimPrefix(match[1], "spec."), ".")
				releases["spec."+name] = note[1]
			}
			for _, match := range setting.FindAllStringSubmatch(part, -1) {
				releases[match[1]] = note[1]
			}
		}
	}
	return releases
}

func TestEveryFieldThatTheFirstReleaseLacksHasANoteInItsSection(t *testing.T) {
	all, noted := releases(t), noted(t)
	first := fieldsOfRelease(t, all[0])
	for field := range fieldsOf(t, "config/crd/bases/"+memcachedCRD) {
		if first[field] || strings.Count(field, ".") != 1 || !strings.HasPrefix(field, "spec.") || strings.Contains(field, ":") {
			continue
		}
		since := noted[field]
		if since == "" {
			t.Errorf("release %s lacks %s, and no section about it says \"Requires release … or newer\"", all[0], field)
			continue
		}
		for _, version := range all {
			if has := fieldsOfRelease(t, version)[field]; has != version.GTE(semver.MustParse(since)) {
				t.Errorf("a section says that %s requires release %s, and it is in release %s: %t", field, since, version, has)
			}
		}
	}
}

func TestEverySettingThatTheFirstReleaseLacksHasANoteInItsSection(t *testing.T) {
	var chart struct{ Settings map[string]string }
	if err := yaml.Unmarshal([]byte(read(t, "charts/memcached-operator/values.yaml")), &chart); err != nil || len(chart.Settings) == 0 {
		t.Fatalf("the chart has the settings %v, %v", chart.Settings, err)
	}
	entries := strings.Split(read(t, "CHANGELOG.md"), "\n## [")[1:] // the newest first
	noted := noted(t)
	for name := range chart.Settings {
		since := ""
		for _, entry := range entries {
			if strings.Contains(entry, "`"+name+"`") {
				since, _, _ = strings.Cut(entry, "]")
			}
		}
		if since == "Unreleased" {
			since = developed(t)
		}
		switch isFirst := strings.HasPrefix(entries[len(entries)-1], since+"]"); {
		case since == "":
			t.Errorf("CHANGELOG.md doesn't name the setting %s", name)
		case !isFirst && noted[name] != since:
			t.Errorf("the section about the setting %s says that it requires release %q, and it is in %s and newer ones", name, noted[name], since)
		case isFirst && noted[name] != "":
			t.Errorf("a section says that the setting %s requires release %s, and all have it", name, noted[name])
		}
	}
}

// developed returns the version that comes next.
func developed(t *testing.T) string {
	t.Helper()
	_, version, _ := strings.Cut(read(t, "Makefile"), "\nVERSION ?= ")
	version, _, _ = strings.Cut(version, "\n")
	return version
}
