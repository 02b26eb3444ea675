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

// releases returns the releases that CHANGELOG.md has, the oldest first. The catalog also has one that was cut and not
// published, from which the tests with OLM upgrade.
func releases(t *testing.T) []semver.Version {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS(root), "catalog/releases")
	if err != nil {
		t.Fatal(err)
	}
	changelog := read(t, "CHANGELOG.md")
	var all []semver.Version
	for _, entry := range entries {
		version, err := semver.Parse(entry.Name())
		if err == nil && len(version.Pre) == 0 && strings.Contains(changelog, "\n## ["+entry.Name()+"]") {
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

var (
	specField = regexp.MustCompile("`(spec\\.[a-zA-Z.]+(?:: [A-Z][A-Za-z]+)?)`")
)

func TestEveryFieldThatTheFirstReleaseLacksHasANoteInItsSection(t *testing.T) {
	all := releases(t)
	noted := map[string]string{} // the releases of the notes, by the fields that their sections name
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
				noted["spec."+name] = note[1]
			}
		}
	}
	if len(all) == 0 {
		for field, since := range noted {
			t.Errorf("a section says that %s requires release %s, and there is no release without it", field, since)
		}
		return
	}
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
