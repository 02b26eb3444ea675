package config

import (
	"bytes"
	"strings"
	"testing"
)

const root = ".."

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The agent is in the operator's image: whichever image is specified, both run
// the same.
func TestImageIsTheAgentsToo(t *testing.T) {
	for reference, want := range map[string]string{
		"localhost:5000/operator":                        "localhost:5000/operator:latest",
		"localhost:5000/operator:v2":                     "localhost:5000/operator:v2",
		"registry.example.com/operator@sha256:" + digest: "registry.example.com/operator@sha256:" + digest,
	} {
		t.Run(reference, func(t *testing.T) {
			built, err := Build(root, "config/default", map[string]string{"controller": reference})
			if err != nil {
				t.Fatal(err)
			}
			content, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(content), ": "+want+"\n"); got != 2 {
				t.Errorf("%s stands there %d times, want it for the container and the agent", want, got)
			}
		})
	}
}

// kubectl apply stops at the first object whose namespace is not there yet.
func TestNamespaceComesFirst(t *testing.T) {
	built, err := Build(root, "config/default", nil)
	if err != nil {
		t.Fatal(err)
	}
	content, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	if namespace, first := bytes.Index(content, []byte("kind: Namespace\n")), bytes.Index(content, []byte("namespace: memcached-operator-system")); namespace < 0 || namespace > first {
		t.Errorf("the namespace is at %d and the first object in it at %d", namespace, first)
	}
}

func TestUnknownImage(t *testing.T) {
	if _, err := Build(root, "config/default", map[string]string{"manager": "operator:1"}); err == nil || !strings.Contains(err.Error(), `no kustomization names the image "manager"`) {
		t.Errorf("the error is %v", err)
	}
}
