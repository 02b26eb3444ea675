package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/alpha/template/semver"
	"sigs.k8s.io/yaml"
)

// render returns the catalog in which image, the bundle in bundle/, and the
// releases before it stand as the template says.
func render(ctx context.Context, root, image string) ([]byte, error) {
	template, err := os.ReadFile(filepath.Join(root, "catalog/template.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the template: %w", err)
	}
	if err := lists(template, image); err != nil {
		return nil, err
	}
	published, err := declcfg.LoadFS(ctx, os.DirFS(filepath.Join(root, configsDir)))
	if errors.Is(err, fs.ErrNotExist) {
		published, err = &declcfg.DeclarativeConfig{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalog so far: %w", err)
	}
	renderBundle := func(_ context.Context, reference string) (*declcfg.DeclarativeConfig, error) {
		if reference == image {
			return current(root, image)
		}
		return earlier(published, reference)
	}
	rendered, err := (&semver.Factory{}).CreateTemplate(renderBundle).Render(ctx, bytes.NewReader(template))
	if err != nil {
		return nil, fmt.Errorf("rendering the template: %w", err)
	}
	var out bytes.Buffer
	if err := declcfg.WriteYAML(*rendered, &out); err != nil {
		return nil, fmt.Errorf("writing the catalog: %w", err)
	}
	return out.Bytes(), nil
}

// lists is an error unless the template lists image, since the catalog would
// then miss the release at hand.
func lists(template []byte, image string) error {
	var data semver.SemverTemplateData
	if err := yaml.UnmarshalStrict(template, &data); err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	for _, bundle := range slices.Concat(data.Candidate.Bundles, data.Fast.Bundles, data.Stable.Bundles) {
		if bundle.Image == image {
			return nil
		}
	}
	return fmt.Errorf("catalog/template.yaml lists no bundle %s: add it to its streams", image)
}

// current describes the bundle in bundle/.
func current(root, image string) (*declcfg.DeclarativeConfig, error) {
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		return nil, fmt.Errorf("reading the bundle: %w", err)
	}
	csv, err := json.Marshal(bundle.CSV)
	if err != nil {
		return nil, fmt.Errorf("writing the ClusterServiceVersion: %w", err)
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
	return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{described}}, nil
}

// earlier finds a release in the catalog so far.
func earlier(published *declcfg.DeclarativeConfig, image string) (*declcfg.DeclarativeConfig, error) {
	i := slices.IndexFunc(published.Bundles, func(b declcfg.Bundle) bool { return b.Image == image })
	if i < 0 {
		return nil, fmt.Errorf("the bundle %s is neither the one at hand nor in the catalog: render it once with opm render", image)
	}
	return &declcfg.DeclarativeConfig{Bundles: published.Bundles[i : i+1]}, nil
}
