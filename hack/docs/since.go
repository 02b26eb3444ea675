package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/blang/semver/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// since has, by the plural of a kind, the path of each field and each value of an enum, the first release that has
// it. What the first release of all has is not in it.
type since map[string]map[string]string

var makefileVersion = regexp.MustCompile(`(?m)^VERSION \?= (.*)$`)

// readSince compares the releases in catalog/releases that CHANGELOG.md has, without candidates. What none of them has
// is of the version in the Makefile, which is the first release of all if there is none.
func readSince(root string) (since, error) {
	entries, err := os.ReadDir(filepath.Join(root, "catalog", "releases"))
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	var releases []semver.Version
	for _, entry := range entries {
		if version, err := semver.Parse(entry.Name()); err == nil && len(version.Pre) == 0 && bytes.Contains(changelog, []byte("\n## ["+entry.Name()+"]")) {
			releases = append(releases, version)
		}
	}
	slices.SortFunc(releases, semver.Version.Compare)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, fmt.Errorf("reading the version: %w", err)
	}
	match := makefileVersion.FindSubmatch(makefile)
	if match == nil {
		return nil, errors.New("the Makefile sets no VERSION")
	}
	next, err := semver.ParseTolerant(string(match[1]))
	if err != nil {
		return nil, fmt.Errorf("reading VERSION of the Makefile: %w", err)
	}
	all := since{}
	for _, plural := range kinds {
		first := map[string]string{}
		for i, release := range releases {
			fields, err := readFields(filepath.Join(root, "catalog", "releases", release.String(), "manifests"), plural)
			if errors.Is(err, fs.ErrNotExist) { // a later release added the CRD
				continue
			} else if err != nil {
				return nil, err
			}
			for path := range fields {
				if _, found := first[path]; !found && i == 0 {
					first[path] = ""
				} else if !found {
					first[path] = release.String()
				}
			}
		}
		fields, err := readFields(filepath.Join(root, "config", "crd", "bases"), plural)
		if err != nil {
			return nil, err
		}
		for path := range fields {
			if _, found := first[path]; !found && len(releases) > 0 {
				first[path] = next.FinalizeVersion()
			}
		}
		all[plural] = first
	}
	return all, nil
}

// readFields returns the paths of all fields and values of enums of a CRD in a directory.
func readFields(directory, plural string) (map[string]bool, error) {
	crd, err := readCRD(directory, plural)
	if err != nil {
		return nil, err
	}
	fields := map[string]bool{}
	addFields(fields, "", crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	return fields, nil
}

func addFields(fields map[string]bool, path string, schema *apiextensionsv1.JSONSchemaProps) {
	for _, value := range schema.Enum {
		fields[path+"="+string(value.Raw)] = true
	}
	for name, field := range schema.Properties {
		full := name
		if path != "" {
			full = path + "." + name
		}
		fields[full] = true
		addFields(fields, full, &field)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		fields[path+"[]"] = true
		addFields(fields, path+"[]", schema.Items.Schema)
	}
}

// readCRD returns the CRD of a kind in a directory.
func readCRD(directory, plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	raw, err := os.ReadFile(filepath.Join(directory, "cache.memcached-operator.io_"+plural+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading a CRD: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
		return nil, fmt.Errorf("reading the CRD %s: %w", plural, err)
	}
	return &crd, nil
}
