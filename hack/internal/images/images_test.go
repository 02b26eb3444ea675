// Package images verifies that images.yaml names the public images that the
// project uses, and no other.
package images

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/hack/internal/must"
)

const root = "../../.."

// listed is an image in images.yaml.
type listed struct {
	Name    string `json:"name"`
	Tag     string `json:"tag,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Purpose string `json:"purpose"`
	used    bool
}

// list returns the images in images.yaml by name.
func list(t *testing.T) map[string]*listed {
	t.Helper()
	content := must.Read(t, filepath.Join(root, "images.yaml"))
	var file struct {
		Images []listed `json:"images"`
	}
	must.Succeed(t, yaml.UnmarshalStrict(content, &file))
	images := map[string]*listed{}
	for _, image := range file.Images {
		if image.Purpose == "" || images[image.Name] != nil {
			t.Errorf("%s has no purpose, or is there twice", image.Name)
		}
		images[image.Name] = &image
	}
	return images
}

var (
	// inText is a reference with one of the registries of public images, its tag and its digest.
	inText = regexp.MustCompile(`((?:docker\.io|gcr\.io|ghcr\.io|mcr\.microsoft\.com|quay\.io|registry\.k8s\.io)/[a-z0-9._/-]*[a-z0-9])` +
		`(?::([A-Za-z0-9_][A-Za-z0-9_.-]*))?(?:@(sha256:[0-9a-f]+))?`)
	// from begins a stage on an image without the name of a registry, which is Docker's, such as golang:1.26.
	from = regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?([a-z0-9-]+(?::\S+)?)(?: |$)`)
	base = regexp.MustCompile(`(?m)^IMAGE_TAG_BASE \?= (.*)$`)
)

func TestEveryImageIsListedAndUsed(t *testing.T) {
	images := list(t)
	// What was released names what it named then.
	files := must.Run(t, root, "git", "ls-files", "-co", "--exclude-standard", "*Dockerfile", ".devcontainer", ".github", "config", "bundle", "catalog", "charts",
		"Makefile", "main.go", ":!catalog/releases", ":!catalog/configs")
	for path := range strings.Lines(files) {
		path = strings.TrimSpace(path)
		text := string(must.Read(t, filepath.Join(root, path)))
		if match := base.FindStringSubmatch(text); match != nil {
			text = strings.ReplaceAll(text, "$(IMAGE_TAG_BASE)", match[1])
		}
		if strings.HasSuffix(path, "Dockerfile") {
			text = from.ReplaceAllString(strings.ReplaceAll(text, "FROM scratch", ""), "docker.io/library/$1 ")
		}
		for _, r := range inText.FindAllStringSubmatch(text, -1) {
			switch image := images[r[1]]; {
			case image == nil:
				t.Errorf("%s names %s, which images.yaml does not list", path, r[0])
			case image.Tag != "" && r[2] != "" && r[2] != image.Tag || r[3] != "" && r[3] != image.Digest:
				t.Errorf("%s names %s, and images.yaml has the tag %s and the digest %q", path, r[0], image.Tag, image.Digest)
			default:
				image.used = true
			}
		}
	}
	for name, image := range images {
		if !image.used {
			t.Errorf("images.yaml lists %s, which is not used", name)
		}
	}
}
