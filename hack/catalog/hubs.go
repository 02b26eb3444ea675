package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

// openshift are the versions of OpenShift whose catalogs get the operator: from that in the bundle's annotations to the newest
// one that the community has. A later one gets the operator by the promotion in ci.yaml.
var openshift = []string{"v4.16", "v4.17", "v4.18", "v4.19", "v4.20", "v4.21", "v4.22"}

const (
	ciFile       = "ci.yaml"
	templateFile = "semver.yaml"
)

// hubs writes what pull requests for a release add to the repositories community-operators, of OperatorHub.io, and
// community-operators-prod, of OpenShift, into folders in dir: the bundle with the streams it is added to, the template to which
// the repository's pipeline adds each release, and how the pipeline treats them.
func hubs(root, dir string, version semver.Version) error {
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
	released := os.DirFS(filepath.Join(root, releasesDir, version.String()))
	for repository, catalogs := range map[string][]string{"community-operators": {"latest"}, "community-operators-prod": openshift} {
		target := filepath.Join(dir, repository)
		operator := filepath.Join(target, "operators", packageName)
		bundle := filepath.Join(operator, version.String())
		if err := errors.Join(os.RemoveAll(target), os.CopyFS(bundle, released)); err != nil {
			return fmt.Errorf("writing %s: %w", target, err)
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
			text, _ := yaml.Marshal(content) // of texts
			if err := write(file, text); err != nil {
				return err
			}
		}
	}
	return nil
}
