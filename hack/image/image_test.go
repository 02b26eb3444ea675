package main

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

var context = fstest.MapFS{
	"bundle/manifests/csv.yaml": {Data: []byte("kind: ClusterServiceVersion\n"), Mode: 0o600},
	"bundle/tests/run":          {Data: []byte("#!/bin/sh\n"), Mode: 0o700},
}

func assembled(t *testing.T, dockerfile string, arguments map[string]string) (v1.Image, error) {
	t.Helper()
	steps, err := parse(dockerfile, arguments)
	if err != nil {
		return nil, err
	}
	return assemble(steps, context)
}

func TestAssemble(t *testing.T) {
	const dockerfile = `# A comment.
ARG BASE=registry.invalid/opm
FROM ${BASE}
LABEL one=1 \
      two=a,b
COPY bundle/manifests /manifests/
COPY bundle/tests/run /bin/
COPY bundle/tests/run /start
USER 1001
EXPOSE 50051
ENTRYPOINT ["/start", "now"]
CMD ["-v"]
`
	image, err := assembled(t, dockerfile, map[string]string{"BASE": "scratch"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if config.Labels["one"] != "1" || config.Labels["two"] != "a,b" {
		t.Errorf("labels are %v", config.Labels)
	}
	if _, found := config.ExposedPorts["50051/tcp"]; !found || config.User != "1001" {
		t.Errorf("ports are %v and the user is %q", config.ExposedPorts, config.User)
	}
	if got := strings.Join(append(config.Entrypoint, config.Cmd...), " "); got != "/start now -v" {
		t.Errorf("it runs %q", got)
	}
	if file.OS != "linux" || file.Architecture == "" {
		t.Errorf("the platform is %s/%s", file.OS, file.Architecture)
	}

	modes := map[string]int64{}
	archive := tar.NewReader(mutate.Extract(image))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
	for name, mode := range map[string]int64{"manifests/csv.yaml": 0o644, "bin/run": 0o755, "start": 0o755} {
		if modes[name] != mode {
			t.Errorf("%s has mode %o, want %o; the image holds %v", name, modes[name], mode, modes)
		}
	}

	again, err := assembled(t, dockerfile, map[string]string{"BASE": "scratch"})
	if err != nil {
		t.Fatal(err)
	}
	one, _ := image.Digest()
	two, _ := again.Digest()
	if one != two {
		t.Errorf("the same inputs gave %s and %s", one, two)
	}
}

// A step that cannot be done must not be left out in silence.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		dockerfile string
		arguments  map[string]string
		want       string
	}{
		"a command":         {"FROM scratch\nRUN true", nil, "line 2: RUN needs docker or podman"},
		"a second stage":    {"FROM scratch\nFROM scratch", nil, "line 2: FROM needs docker or podman"},
		"a named stage":     {"FROM scratch AS build", nil, "must begin with FROM and one image"},
		"no base":           {"COPY a b", nil, "must begin with FROM and one image"},
		"a file not there":  {"FROM scratch\nCOPY nowhere /", nil, "copying nowhere"},
		"from a stage":      {"FROM scratch\nCOPY --from=build /a /b", nil, "COPY must name one source and one target"},
		"a quoted label":    {"FROM scratch\nLABEL a=\"b c\"", nil, "without quotes"},
		"an unknown ARG":    {"FROM scratch", map[string]string{"OTHER": "1"}, "there is no ARG OTHER"},
		"an unclosed array": {"FROM scratch\nCMD [\"a\"", nil, "line 2: reading [\"a\""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := assembled(t, test.dockerfile, test.arguments)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}
