package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/alpha/template/semver"
	"sigs.k8s.io/yaml"
)

// render returns the catalog of every release, as the template lists them. It is
// nil before the first one.
func render(ctx context.Context, root string) ([]byte, error) {
	versions, err := released(root)
	if err != nil {
		return nil, err
	}
	template, err := os.ReadFile(filepath.Join(root, templateFile))
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	images, err := listed(template, versions)
	if err != nil || len(images) == 0 {
		return nil, err
	}
	bundles := map[string]string{}
	for image, version := range images {
		bundles[image] = filepath.Join(root, releasesDir, version)
	}
	return catalogOf(ctx, template, bundles)
}

// preview returns a catalog of bundles, folders by image, all of them in both
// channels.
func preview(ctx context.Context, bundles map[string]string) ([]byte, error) {
	type entry struct {
		Image string `json:"image"`
	}
	var entries []entry
	for _, image := range slices.Sorted(maps.Keys(bundles)) {
		entries = append(entries, entry{image})
	}
	stream := map[string]any{"bundles": entries}
	template, err := yaml.Marshal(map[string]any{
		"schema": "olm.semver", "generateMajorChannels": true, "candidate": stream, "stable": stream,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the template: %w", err)
	}
	return catalogOf(ctx, template, bundles)
}

// catalogOf renders a template of bundles, folders by image, and validates what
// comes out as opm does.
func catalogOf(ctx context.Context, template []byte, bundles map[string]string) ([]byte, error) {
	described := func(_ context.Context, image string) (*declcfg.DeclarativeConfig, error) {
		bundle, err := describe(image, bundles[image])
		return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{bundle}}, err
	}
	rendered, err := (&semver.Factory{}).CreateTemplate(described).Render(ctx, bytes.NewReader(template))
	if err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	var out bytes.Buffer
	if err := declcfg.WriteYAML(*rendered, &out); err != nil {
		return nil, fmt.Errorf("writing the catalog: %w", err)
	}
	catalog, err := declcfg.LoadReader(bytes.NewReader(out.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("reading the catalog again: %w", err)
	}
	if _, err := declcfg.ConvertToModel(*catalog); err != nil {
		return nil, fmt.Errorf("the catalog is not valid: %w", err)
	}
	return out.Bytes(), nil
}

// describe is what a catalog says of the bundle in dir, whose image is image.
func describe(image, dir string) (declcfg.Bundle, error) {
	bundle, err := manifests.GetBundleFromDir(dir)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("reading the bundle in %s: %w", dir, err)
	}
	if bundle.Package != packageName {
		return declcfg.Bundle{}, fmt.Errorf("the bundle in %s is of the package %q, not of %s", dir, bundle.Package, packageName)
	}
	csv, err := json.Marshal(bundle.CSV)
	if err != nil {
		return declcfg.Bundle{}, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
	}
	described := declcfg.Bundle{
		Schema:  declcfg.SchemaBundle,
		Name:    bundle.CSV.Name,
		Package: bundle.Package,
		Image:   image,
		// The package takes its icon and description from it.
		CsvJSON: string(csv),
	}
	for _, crd := range bundle.V1CRDs {
		for _, version := range crd.Spec.Versions {
			described.Properties = append(described.Properties, property.MustBuildGVK(crd.Spec.Group, version.Name, crd.Spec.Names.Kind))
		}
	}
	described.Properties = append(described.Properties,
		property.MustBuildPackage(bundle.Package, bundle.CSV.Spec.Version.String()),
		property.MustBuildCSVMetadata(*bundle.CSV))
	described.RelatedImages = []declcfg.RelatedImage{{Image: image}}
	for _, related := range bundle.CSV.Spec.RelatedImages {
		described.RelatedImages = append(described.RelatedImages, declcfg.RelatedImage{Name: related.Name, Image: related.Image})
	}
	return described, nil
}
