package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

// The minor versions of OpenShift 4 whose catalogs get the operator: from that in the bundle's annotations to the newest
// one that the community has. A later one gets the operator by the promotion in ci.yaml.
const oldestOpenShift, newestOpenShift = 16, 22

const (
	ciFile       = "ci.yaml"
	templateFile = "semver.yaml"
)

// hub writes what a pull request for a release adds to a repository of OperatorHub: the bundle with the streams it is
// added to, the template to which the repository's pipeline adds each release, and how the pipeline treats them.
func hub(root, dir string, version semver.Version, catalogs []string) error {
	operator := filepath.Join(dir, "operators", packageName)
	bundle := filepath.Join(operator, version.String())
	if err := os.CopyFS(bundle, os.DirFS(filepath.Join(root, releasesDir, version.String()))); err != nil {
		return err
	}
	ci, err := os.ReadFile(filepath.Join(root, "catalog", ciFile))
	if err != nil {
		return err
	}
	var settings map[string]any
	if err := yaml.UnmarshalStrict(ci, &settings); err != nil {
		return fmt.Errorf("reading catalog/%s: %w", ciFile, err)
	}
	if reviewers, _ := settings["reviewers"].([]any); len(reviewers) == 0 {
		delete(settings, "reviewers")
	}
	settings["fbc"] = map[string]any{
		"enabled": true, "version_promotion_strategy": "always",
		"catalog_mapping": []any{map[string]any{"template_name": templateFile, "type": "olm.semver", "catalog_names": catalogs}},
	}
	for file, content := range map[string]any{
		filepath.Join(operator, ciFile):                            settings,
		filepath.Join(operator, "catalog-templates", templateFile): template(nil),
		filepath.Join(bundle, "release-config.yaml"): map[string]any{
			"catalog_templates": []any{map[string]any{"template_name": templateFile, "channels": streams(version)}},
		},
	} {
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("writing %s: %w", file, err)
		}
		if err := write(file, text); err != nil {
			return err
		}
	}
	return nil
}

// hubs writes the folders community-operators, of OperatorHub.io, and community-operators-prod, of OpenShift, in dir.
func hubs(root, dir string, version semver.Version) error {
	var openshift []string
	for minor := oldestOpenShift; minor <= newestOpenShift; minor++ {
		openshift = append(openshift, fmt.Sprintf("v4.%d", minor))
	}
	for repository, catalogs := range map[string][]string{"community-operators": {"latest"}, "community-operators-prod": openshift} {
		target := filepath.Join(dir, repository)
		if err := os.RemoveAll(target); err != nil {
			return err
		}
		if err := hub(root, target, version, catalogs); err != nil {
			return fmt.Errorf("writing %s: %w", target, err)
		}
	}
	return nil
}
