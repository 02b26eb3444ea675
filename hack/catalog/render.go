package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	templates "github.com/operator-framework/operator-registry/alpha/template/semver"
	"sigs.k8s.io/yaml"
)

// render returns the catalog of every release. The images of the bundles are bundleImage:vVERSION.
func render(ctx context.Context, root, bundleImage string) ([]byte, error) {
	versions, err := released(root)
	if err != nil {
		return nil, err
	}
	bundles := map[string]string{}
	images := map[string][]string{}
	for _, version := range versions {
		image := bundleImage + ":v" + version.String()
		bundles[image] = filepath.Join(root, releasesDir, version.String())
		for _, stream := range streams(version) {
			images[stream] = append(images[stream], image)
		}
	}
	return catalogOf(ctx, bundles, template(images), deprecations(versions))
}

// released returns the versions of the releases, the oldest first.
func released(root string) ([]semver.Version, error) {
	entries, err := os.ReadDir(filepath.Join(root, releasesDir))
	if err != nil {
		return nil, fmt.Errorf("reading the releases: %w", err)
	}
	var versions []semver.Version
	for _, entry := range entries {
		if !entry.IsDir() { // the checksums
			continue
		}
		version, err := semver.Parse(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the releases: %w", err)
		}
		versions = append(versions, version)
	}
	semver.Sort(versions)
	return versions, nil
}

// streams returns where a release is in the template. A pre-release is a candidate only.
func streams(version semver.Version) []string {
	if len(version.Pre) > 0 {
		return []string{"Candidate"}
	}
	return []string{"Candidate", "Stable"}
}

// template returns a semver template with the images of each stream, in the case in which the hubs' pipeline adds to it.
func template(images map[string][]string) map[string]any {
	out := map[string]any{"Schema": "olm.semver", "GenerateMajorChannels": true}
	for stream, images := range images {
		var bundles []any
		for _, image := range images {
			bundles = append(bundles, map[string]any{"Image": image})
		}
		out[stream] = map[string]any{"Bundles": bundles}
	}
	return out
}

// deprecations returns the releases that get no fixes, see SECURITY.md: those of a minor release before the latest, and
// the candidates of a release that followed.
func deprecations(versions []semver.Version) []declcfg.DeprecationEntry {
	var out []declcfg.DeprecationEntry
	var latest semver.Version
	for _, version := range versions { // the oldest first
		if len(version.Pre) == 0 {
			latest = version
		}
	}
	for _, version := range versions {
		if version.Major == latest.Major && version.Minor == latest.Minor && len(version.Pre) == 0 || version.GT(latest) {
			continue
		}
		out = append(out, declcfg.DeprecationEntry{
			Reference: declcfg.PackageScopedReference{Schema: declcfg.SchemaBundle, Name: packageName + ".v" + version.String()},
			Message:   fmt.Sprintf("%s gets no fixes for vulnerabilities. Upgrade to %d.%d.", version, latest.Major, latest.Minor),
		})
	}
	return out
}

// catalogOf renders a semver template, adds the deprecations, and validates the result. bundles are the folders of the
// images.
func catalogOf(
	ctx context.Context, bundles map[string]string, template map[string]any, deprecated []declcfg.DeprecationEntry,
) ([]byte, error) {
	content, _ := yaml.Marshal(template) // of texts
	described := func(_ context.Context, image string) (*declcfg.DeclarativeConfig, error) {
		bundle, err := describe(image, bundles[image])
		return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{bundle}}, err
	}
	rendered, err := (&templates.Factory{}).CreateTemplate(described).Render(ctx, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	if len(deprecated) > 0 {
		rendered.Deprecations = []declcfg.Deprecation{{Schema: declcfg.SchemaDeprecation, Package: packageName, Entries: deprecated}}
	}
	var out bytes.Buffer
	if err := declcfg.WriteYAML(*rendered, &out); err != nil {
		return nil, fmt.Errorf("writing the catalog: %w", err)
	}
	if _, err := declcfg.ConvertToModel(*rendered); err != nil {
		return nil, fmt.Errorf("the catalog is not valid: %w", err)
	}
	return out.Bytes(), nil
}

// describe returns the entry of a catalog for the bundle in dir.
func describe(image, dir string) (declcfg.Bundle, error) {
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("reading the bundle in %s: %w", dir, err)
	}
	csv, _ := json.Marshal(bundle.CSV) // which was read
	described := declcfg.Bundle{
		Schema:  declcfg.SchemaBundle,
		Name:    bundle.CSV.Name,
		Package: bundle.Package,
		Image:   image,
		// The package takes its icon and description from the CSV.
		CsvJSON:       string(csv),
		RelatedImages: []declcfg.RelatedImage{{Image: image}},
	}
	for _, crd := range bundle.V1CRDs {
		for _, version := range crd.Spec.Versions {
			described.Properties = append(described.Properties, property.MustBuildGVK(crd.Spec.Group, version.Name, crd.Spec.Names.Kind))
		}
	}
	described.Properties = append(described.Properties,
		property.MustBuildPackage(bundle.Package, bundle.CSV.Spec.Version.String()),
		property.MustBuildCSVMetadata(*bundle.CSV))
	for _, related := range bundle.CSV.Spec.RelatedImages {
		described.RelatedImages = append(described.RelatedImages, declcfg.RelatedImage{Name: related.Name, Image: related.Image})
	}
	return described, nil
}
