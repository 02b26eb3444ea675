// Package images verifies that images.yaml names the public images that the
// project uses, and no other.
package images

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../../.."

// listed is an image in images.yaml.
type listed struct {
	Name    string `json:"name"`
	Tag     string `json:"tag,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Purpose string `json:"purpose"`
}

func list(t *testing.T) []listed {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "images.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Images []listed `json:"images"`
	}
	if err := yaml.UnmarshalStrict(content, &file); err != nil {
		t.Fatal(err)
	}
	return file.Images
}

// sources are the files that name images, by path.
func sources(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			// What was released names what it named then, and the others are not sources.
			if slices.Contains([]string{".git", "bin", "dist", "catalog/releases", "catalog/configs"}, path) {
				return fs.SkipDir
			}
			return nil
		}
		top, _, _ := strings.Cut(path, "/")
		if slices.Contains([]string{".devcontainer", ".github", "config", "bundle", "catalog", "Makefile", "main.go"}, top) || isDockerfile(path) {
			content, err := os.ReadFile(filepath.Join(root, path))
			files[path] = string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isDockerfile(path string) bool {
	return filepath.Base(path) == "Dockerfile" || filepath.Ext(path) == ".Dockerfile"
}

var (
	// inText is a reference that names a registry that we know, or one that any registry could have, with a tag.
	inText = regexp.MustCompile(`(?:(?:docker\.io|gcr\.io|ghcr\.io|mcr\.microsoft\.com|quay\.io|registry\.k8s\.io)/[a-z0-9._/-]*[a-z0-9]` +
		`|[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]+)?/[a-z0-9._/-]*[a-z0-9]:[A-Za-z0-9_]` +
		`)(?::?[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?:@sha256:[0-9a-f]+)?`)
	from  = regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)(?: AS (\S+))?$`)
	base  = regexp.MustCompile(`(?m)^IMAGE_TAG_BASE \?= (.*)$`)
	isSum = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// references are the images that a file names.
func references(path, content string) []string {
	if match := base.FindStringSubmatch(content); match != nil {
		content = strings.ReplaceAll(content, "$(IMAGE_TAG_BASE)", match[1])
	}
	found := slices.DeleteFunc(inText.FindAllString(content, -1), func(reference string) bool {
		host, _, _ := strings.Cut(reference, "/")
		// Documentation has examples.
		return strings.HasSuffix(host, ".example.com")
	})
	if !isDockerfile(path) {
		return found
	}
	stages := []string{"scratch"}
	for _, match := range from.FindAllStringSubmatch(content, -1) {
		// One from an ARG stands in its default.
		if image := match[1]; !slices.Contains(stages, image) && !strings.HasPrefix(image, "$") {
			found = append(found, image)
		}
		stages = append(stages, match[2])
	}
	return found
}

// parse splits a reference into its parts. The registry is Docker's where there
// is none.
func parse(reference string) listed {
	name, digest, _ := strings.Cut(reference, "@")
	tag := ""
	if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
		name, tag = name[:i], name[i+1:]
	}
	switch host, _, found := strings.Cut(name, "/"); {
	case !found:
		name = "docker.io/library/" + name
	case !strings.ContainsAny(host, ".:"):
		name = "docker.io/" + name
	}
	return listed{Name: name, Tag: tag, Digest: digest}
}

// differences is what keeps images from being those that files name.
func differences(images []listed, files map[string]string) []string {
	var out []string
	unused := map[string]bool{}
	for _, image := range images {
		unused[image.Name] = true
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		for _, reference := range references(path, files[path]) {
			used := parse(reference)
			i := slices.IndexFunc(images, func(l listed) bool { return l.Name == used.Name })
			if i < 0 {
				out = append(out, fmt.Sprintf("%s names %s, which images.yaml does not list", path, reference))
				continue
			}
			delete(unused, used.Name)
			if want := images[i].Tag; want != "" && used.Tag != "" && used.Tag != want {
				out = append(out, fmt.Sprintf("%s names %s, and images.yaml has the tag %s", path, reference, want))
			}
			if used.Digest != "" && used.Digest != images[i].Digest {
				out = append(out, fmt.Sprintf("%s names %s, and images.yaml has the digest %q", path, reference, images[i].Digest))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		out = append(out, fmt.Sprintf("images.yaml lists %s, which is not used", name))
	}
	return out
}

func TestEveryImageIsListedAndUsed(t *testing.T) {
	for _, difference := range differences(list(t), sources(t)) {
		t.Error(difference)
	}
}

func TestEachImageSaysWhatItIsFor(t *testing.T) {
	names := map[string]bool{}
	for _, image := range list(t) {
		if image.Purpose == "" || names[image.Name] || parse(image.Name).Name != image.Name {
			t.Errorf("%s has no purpose, is there twice or lacks its registry", image.Name)
		}
		names[image.Name] = true
		if image.Digest != "" && !isSum.MatchString(image.Digest) {
			t.Errorf("%s has the digest %s", image.Name, image.Digest)
		}
	}
}

func TestDifferences(t *testing.T) {
	images := []listed{{Name: "docker.io/library/golang", Tag: "1.26"}, {Name: "quay.io/them/opm"}}
	got := differences(images, map[string]string{"Dockerfile": "FROM golang:1.25 AS build\nFROM build\nFROM alpine:3\n", "Makefile": "registry.acme.io:5000/a/b:v1"})
	want := []string{
		"Dockerfile names golang:1.25, and images.yaml has the tag 1.26", "Dockerfile names alpine:3, which images.yaml does not list",
		"Makefile names registry.acme.io:5000/a/b:v1, which images.yaml does not list", "images.yaml lists quay.io/them/opm, which is not used",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the differences are %q, want %q", got, want)
	}
}
