package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
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

// stages are the folders that stand for stages.
var stages = map[string]fs.FS{
	"build": fstest.MapFS{"out/program": {Data: []byte("\x7fELF"), Mode: 0o755}},
}

func assembled(t *testing.T, dockerfile string, arguments map[string]string) (v1.Image, error) {
	t.Helper()
	steps, err := parse(dockerfile, arguments)
	if err != nil {
		return nil, err
	}
	return assemble(steps, context, stages)
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

	modes := modes(t, image)
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

func modes(t *testing.T, image v1.Image) map[string]int64 {
	t.Helper()
	modes := map[string]int64{}
	archive := tar.NewReader(mutate.Extract(image))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[header.Name] = header.Mode
	}
}

func TestAFolderStandsForAStage(t *testing.T) {
	image, err := assembled(t, `FROM --platform=$BUILDPLATFORM golang AS build
WORKDIR /src
COPY . .
RUN go build -o /out/program . && \
    touch /out/other
FROM scratch
COPY --from=build /out/program /
COPY bundle/tests/run /
USER 65532:65532
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := modes(t, image)
	if len(got) != 2 || got["program"] != 0o755 || got["run"] != 0o755 {
		t.Errorf("the image holds %v, want program and run", got)
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
		"a stage not given": {"FROM scratch AS tools\nFROM scratch", nil, "line 1: what stage tools makes is needed: give it by --stage tools=FOLDER"},
		"a nameless stage":  {"FROM scratch\nFROM scratch", nil, "line 1: an earlier stage must have a name"},
		"a named last one":  {"FROM scratch AS build", nil, "line 1: the last FROM must name one image"},
		"no base":           {"COPY a b", nil, "must begin with FROM"},
		"a file not there":  {"FROM scratch\nCOPY nowhere /", nil, "copying nowhere"},
		"of no stage":       {"FROM scratch\nCOPY --from=tools /a /b", nil, "COPY is from tools, which is no stage"},
		"not in the stage":  {"FROM scratch AS build\nFROM scratch\nCOPY --from=build /a /b", nil, "copying /a"},
		"a copy of nothing": {"FROM scratch\nCOPY", nil, "COPY must name one source and one target"},
		"of two files":      {"FROM scratch\nCOPY a b c", nil, "COPY must name one source and one target"},
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
