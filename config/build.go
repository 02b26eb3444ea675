// Package config builds the kustomizations of this folder without the kustomize command, with images of the caller's
// choice. Its tests are of what is installed.
package config

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Build returns the output of "kustomize build" for a folder of the project in root. images replaces references by
// image name, as "kustomize edit set image" does. An unknown name is an error.
func Build(root, dir string, images map[string]string) (resmap.ResMap, error) {
	memory, err := load(root, strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")[0], images)
	if err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	// A namespace comes before the objects in it.
	options.Reorder = krusty.ReorderOptionLegacy
	built, err := krusty.MakeKustomizer(options).Run(memory, filepath.Clean(dir))
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	return built, nil
}

// load copies the tree top of root into memory, with images in the kustomizations that know their names.
func load(root, top string, images map[string]string) (filesys.FileSystem, error) {
	memory, disk := filesys.MakeFsInMemory(), os.DirFS(root)
	unknown := maps.Clone(images)
	err := fs.WalkDir(disk, top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(disk, path)
		if err != nil {
			return err
		}
		if entry.Name() == "kustomization.yaml" {
			var kustomization types.Kustomization
			if err := yaml.Unmarshal(content, &kustomization); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			for i, image := range kustomization.Images {
				if reference, ok := images[image.Name]; ok {
					kustomization.Images[i] = parseImage(image.Name, reference)
					delete(unknown, image.Name)
				}
			}
			if content, err = yaml.Marshal(kustomization); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return memory.WriteFile(path, content)
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(root, top), err)
	}
	for name := range unknown {
		return nil, fmt.Errorf("no kustomization names the image %q", name)
	}
	return memory, nil
}

// parseImage splits an image reference. A colon before the last slash belongs to a registry's port.
func parseImage(alias, reference string) types.Image {
	name, digest, _ := strings.Cut(reference, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i+1:]
	}
	return types.Image{Name: alias, NewName: name, NewTag: tag, Digest: digest}
}
