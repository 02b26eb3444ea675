// Package registry serves the images of the cluster, and pushes them there.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/cache"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/network"
)

// Serve serves images from a folder, inside node1.
func Serve(dir string) error {
	handler, err := newRegistry(dir)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", network.RegistryAddress())
	if err != nil {
		return err
	}
	go func() { log.Printf("registry: %v", http.Serve(listener, handler)) }()
	return nil
}

// newRegistry returns a registry that stores everything in a folder. The library stores blobs there but manifests in
// memory only, so manifests are written to files and replayed at the start.
func newRegistry(dir string) (http.Handler, error) {
	blobs, manifests := filepath.Join(dir, "blobs"), filepath.Join(dir, "manifests")
	for _, d := range []string{blobs, manifests} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	next := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0)))
	if err := replay(next, manifests); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/manifests/") {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = keep(manifests, manifest{Path: r.URL.Path, Type: r.Header.Get("Content-Type"), Body: body})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	}), nil
}

// manifest is a manifest as it was pushed.
type manifest struct {
	Path string // of the request, with the name and the tag
	Type string
	Body []byte
}

func keep(dir string, m manifest) error {
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, cache.Key(m.Path))
	if err := os.WriteFile(path+".part", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path+".json")
}

func replay(to http.Handler, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var m manifest
		if err := json.Unmarshal(content, &m); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		r := httptest.NewRequest(http.MethodPut, m.Path, bytes.NewReader(m.Body))
		r.Header.Set("Content-Type", m.Type)
		w := httptest.NewRecorder()
		to.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			return fmt.Errorf("%s: the registry refused it: %s", f, w.Body)
		}
	}
	return nil
}

// Push pushes an image to the cluster's registry, with the path and tag of ref. Nodes pull from there, whatever
// registry ref names.
func Push(ref string, img v1.Image) error {
	tag, err := clusterTag(ref)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	want, err := img.Digest()
	if err != nil {
		return err
	}
	if have, err := remote.Head(tag, remote.WithContext(ctx)); err == nil && have.Digest == want {
		return nil
	}
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
	path, manifests, err := image.ReadLayout(dir)
	if err != nil {
		return err
	}
	for _, m := range manifests {
		img, err := path.Image(m.Digest)
		if err != nil {
			return err
		}
		if err := Push(m.Annotations[image.RefAnnotation], img); err != nil {
			return err
		}
	}
	return nil
}
