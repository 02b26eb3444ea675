// Package registry pushes images to the registry of the cluster.
package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

// Push pushes an image to the cluster's registry, with the path and tag of ref. Nodes pull from there, whatever
// registry ref names.
func Push(ref string, img v1.Image) error {
	tag, err := clusterTag(ref)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// It uploads only what the registry lacks.
	if err := remote.Write(tag, img, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("pushing %s: %w", ref, err)
	}
	return nil
}

// clusterTag returns the name of an image in the cluster's registry.
func clusterTag(ref string) (name.Tag, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return name.Tag{}, err
	}
	tag, ok := parsed.(name.Tag)
	if !ok {
		return name.Tag{}, errors.New(ref + " names a digest: an image is loaded under a tag")
	}
	return name.NewTag(network.RegistryAddress()+"/"+tag.RepositoryStr()+":"+tag.TagStr(), name.Insecure)
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
