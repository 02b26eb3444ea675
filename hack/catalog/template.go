package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	semver "github.com/blang/semver/v4"
	template "github.com/operator-framework/operator-registry/alpha/template/semver"
	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// Streams of the template, by the names that they have there.
const (
	candidate = "candidate"
	fast      = "fast"
	stable    = "stable"
)

// stream is one of them.
type stream struct {
	Bundles []struct {
		Image string `json:"image"`
	} `json:"bundles"`
}

// streamsOf are the streams that a release belongs into: a pre-release is a
// candidate only.
func streamsOf(version semver.Version) []string {
	if len(version.Pre) > 0 {
		return []string{candidate}
	}
	return []string{candidate, stable}
}

// listed returns the version of each image that the template lists. It is an
// error unless these are all of versions, each in its streams.
func listed(content []byte, versions []semver.Version) (map[string]string, error) {
	if err := yaml.UnmarshalStrict(content, &template.SemverTemplateData{}); err != nil {
		return nil, fmt.Errorf("reading %s: %w", templateFile, err)
	}
	var data struct{ Candidate, Fast, Stable stream }
	if err := yaml.Unmarshal(content, &data); err != nil {
		return nil, fmt.Errorf("reading %s: %w", templateFile, err)
	}
	images := map[string]string{}
	found := map[string][]string{}
	for name, stream := range map[string]stream{candidate: data.Candidate, fast: data.Fast, stable: data.Stable} {
		for _, bundle := range stream.Bundles {
			version, err := tagged(bundle.Image)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(versions, version.EQ) {
				return nil, fmt.Errorf("%s lists %s, and there is no %s/%s: take the line out, or restore the folder with git checkout catalog",
					templateFile, bundle.Image, releasesDir, version)
			}
			if !slices.Contains(streamsOf(version), name) {
				return nil, fmt.Errorf("%s lists %s in %s: it belongs into %s", templateFile, bundle.Image, name, strings.Join(streamsOf(version), " and "))
			}
			images[bundle.Image] = version.String()
			found[version.String()] = append(found[version.String()], name)
		}
	}
	for _, version := range versions {
		for _, stream := range streamsOf(version) {
			if !slices.Contains(found[version.String()], stream) {
				return nil, fmt.Errorf("%s does not list the bundle of %s/%s in %s: add it there, for a release that was published stays for ever",
					templateFile, releasesDir, version, stream)
			}
		}
	}
	return images, nil
}

// tagged is the version that an image's tag names.
func tagged(image string) (semver.Version, error) {
	tag := image[strings.LastIndex(image, ":")+1:]
	text, found := strings.CutPrefix(tag, "v")
	version, err := semver.Parse(text)
	if !found || err != nil {
		return version, fmt.Errorf("%s lists %s: the tag of a release is v and its version, such as v1.0.0", templateFile, image)
	}
	return version, nil
}

// list adds an image to streams of the template in file. All else in it stays as
// it is, comments too.
func list(file, image string, streams []string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(content, &document); err != nil {
		return fmt.Errorf("reading %s: %w", templateFile, err)
	}
	for _, stream := range streams {
		bundles := value(value(document.Content[0], stream), "bundles")
		// It is null before the first release.
		bundles.Kind, bundles.Tag, bundles.Value = yamlv3.SequenceNode, "!!seq", ""
		bundles.Content = append(bundles.Content, &yamlv3.Node{Kind: yamlv3.MappingNode, Content: []*yamlv3.Node{
			{Kind: yamlv3.ScalarNode, Value: "image"}, {Kind: yamlv3.ScalarNode, Value: image},
		}})
	}
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return fmt.Errorf("writing the template: %w", err)
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// value is that of a key, which is added where there is none.
func value(mapping *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	added := &yamlv3.Node{Kind: yamlv3.MappingNode}
	mapping.Content = append(mapping.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: key}, added)
	return added
}
