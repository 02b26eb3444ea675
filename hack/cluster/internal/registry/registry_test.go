package registry

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/memcached-operator/memcached-operator/hack/cluster/internal/image"
)

func TestRegistryKeepsImagesOverRestart(t *testing.T) {
	data, root := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), []byte("contents"), 0o644); err != nil {
		t.Fatal(err)
	}
	img, err := image.FromFolders(v1.Config{}, root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	serve := func() name.Tag {
		handler, err := newRegistry(data)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://")+"/library/thing:1", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		return tag
	}
	if err := remote.Write(serve(), img); err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(serve())
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := got.Digest(); err != nil || digest != want {
		t.Errorf("got %v, %v after a restart, want %v", digest, err, want)
	}
	layers, err := got.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layers[0].Uncompressed(); err != nil {
		t.Errorf("reading a layer after a restart: %v", err)
	}
}
