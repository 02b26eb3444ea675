// Package registry pushes images to the registry of the cluster.
package registry

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

// Push pushes what the cluster's registry lacks of an image, with the path and tag of ref. Nodes pull from there, whatever registry
// ref names.
func Push(ref string, img v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	if err := crane.Push(img, network.RegistryAddress()+"/"+tag.RepositoryStr()+":"+tag.TagStr(), crane.Insecure); err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	return nil
}

// PushLayout pushes all images of an OCI layout.
func PushLayout(dir string) error {
	index, manifests, err := image.ReadLayout(dir)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			return err
		}
		if err := Push(m.Annotations[image.RefAnnotation], img); err != nil {
			return err
		}
	}
	return nil
}
