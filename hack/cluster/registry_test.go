package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/memcached-operator/memcached-operator/hack/cluster/image"
)

func TestRegistryKeepsImagesOverRestart(t *testing.T) {
	data, root := t.TempDir(), t.TempDir()
	write(t, root, "file", "contents")
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

func TestClusterTag(t *testing.T) {
	for ref, want := range map[string]string{
		"memcached":                              "library/memcached:latest",
		"memcached:1.6.38":                       "library/memcached:1.6.38",
		"docker.io/library/memcached:1.6.38":     "library/memcached:1.6.38",
		"ghcr.io/some/operator:v1.0.0":           "some/operator:v1.0.0",
		"registry.example.com:5000/a/b/c:latest": "a/b/c:latest",
		pauseImage:                               "pause:1",
	} {
		got, err := clusterTag(ref)
		if err != nil || got.String() != registryAddress()+"/"+want {
			t.Errorf("clusterTag(%s) = %v, %v; want %s", ref, got, err, want)
		}
	}
	for ref, reason := range map[string]string{
		"a@sha256:" + strings.Repeat("0", 64): "a digest is no tag",
		"Upper:1":                             "not a name",
		"":                                    "no name",
	} {
		if got, err := clusterTag(ref); err == nil {
			t.Errorf("clusterTag(%q) = %v, yet it is %s", ref, got, reason)
		}
	}
}
