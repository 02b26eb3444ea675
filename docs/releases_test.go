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

// releases returns the releases, the oldest first.
func releases(t *testing.T) []semver.Version {
	t.Helper()
	entries, err := fs.ReadDir(os.DirFS(root), "catalog/releases")
	if err != nil {
		t.Fatal(err)
	}
	var all []semver.Version
	for _, entry := range entries {
		if version, err := semver.Parse(entry.Name()); err == nil && len(version.Pre) == 0 {
			all = append(all, version)
		}
	}
	if len(all) == 0 {
		t.Fatal("there is no release")
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
	mark      = regexp.MustCompile(`\((\d+\.\d+\.\d+)\)`)
	specField = regexp.MustCompile("`(spec\\.[a-zA-Z.]+(?:: [A-Z][A-Za-z]+)?)`")
)

// A reader who follows the README installs the release that its command names.
func TestREADMEMarksWhatTheReleaseThatItInstallsLacks(t *testing.T) {
	readme := read(t, "README.md")
	release, err := semver.ParseTolerant(installed.FindStringSubmatch(readme)[1])
	if err != nil {
		t.Fatal(err)
	}
	if want := "The commands above install the latest release, " + release.String() + ".\n"; !strings.Contains(readme, want) {
		t.Errorf("README.md doesn't say %q", want)
	}
	fields := fieldsOfRelease(t, release)
	_, prose := split("README.md", readme)
	prose = strings.Replace(prose, section(t, prose, "## Documentation"), "", 1)
	blocks := strings.Split(regexp.MustCompile(`\n(- |\|)`).ReplaceAllString(prose, "\n\n$1"), "\n\n")
	needed := 0
	for _, block := range blocks {
		newest := release
		for _, match := range mark.FindAllStringSubmatch(block, -1) {
			if version := semver.MustParse(match[1]); version.GT(newest) {
				newest = version
			}
		}
		for _, match := range specField.FindAllStringSubmatch(block, -1) {
			if !fields[match[1]] {
				needed++
				if newest.EQ(release) {
					t.Errorf("release %s lacks `%s`: add the version that has it in parentheses to\n%s", release, match[1], block)
				}
			}
		}
		for _, match := range link.FindAllStringSubmatch(block, -1) {
			if !strings.HasPrefix(match[1], "docs/") || !strings.HasSuffix(match[1], ".md") {
				continue
			}
			note := required.FindStringSubmatch(opening(read(t, match[1]), match[2]))
			if note == nil || semver.MustParse(note[1]).LTE(release) {
				continue
			}
			needed++
			if newest.LT(semver.MustParse(note[1])) {
				t.Errorf("%s%s requires release %s: add (%[3]s) to\n%s", match[1], match[2], note[1], block)
			}
		}
	}
	// Once a release has all of them, no mark is needed.
	if unreleased := len(fieldsOf(t, "config/crd/bases/"+memcachedCRD)) > len(fields); unreleased && needed < 5 {
		t.Errorf("only %d marks are needed", needed)
	}
}

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
