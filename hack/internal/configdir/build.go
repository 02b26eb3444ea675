// Package configdir builds the kustomizations in config/ without the kustomize command, with images of the caller's
// choice.
package configdir

import (
	"fmt"
	"io/fs"
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
	memory, err := load(root, strings.Split(filepath.ToSlash(filepath.Clean(dir)), "/")[0])
	if err != nil {
		return nil, err
	}
	for name, reference := range images {
		if err := setImage(memory, name, reference); err != nil {
			return nil, err
		}
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

// load copies the tree top of root into memory.
func load(root, top string) (filesys.FileSystem, error) {
	memory := filesys.MakeFsInMemory()
	disk := os.DirFS(root)
	err := fs.WalkDir(disk, top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(disk, path)
		if err != nil {
			return err
		}
		return memory.WriteFile(path, content)
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(root, top), err)
	}
	return memory, nil
}

// setImage sets the reference of an image in every kustomization that knows its name.
func setImage(memory filesys.FileSystem, name, reference string) error {
	known := false
	err := memory.Walk(".", func(path string, info os.FileInfo, err error) error {
		if err != nil || filepath.Base(path) != "kustomization.yaml" {
			return err
		}
		content, err := memory.ReadFile(path)
		if err != nil {
			return err
		}
		var kustomization types.Kustomization
		if err := yaml.Unmarshal(content, &kustomization); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		for i := range kustomization.Images {
			if image := &kustomization.Images[i]; image.Name == name {
				*image = parseImage(reference)
				image.Name = name
				known = true
			}
		}
		content, err = yaml.Marshal(kustomization)
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
		return memory.WriteFile(path, content)
	})
	if err == nil && !known {
		err = fmt.Errorf("no kustomization names the image %q", name)
	}
	return err
}

// parseImage splits an image reference. A colon before the last slash belongs to a registry's port.
func parseImage(reference string) types.Image {
	name, digest, _ := strings.Cut(reference, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i+1:]
	}
	return types.Image{NewName: name, NewTag: tag, Digest: digest}
}
