package image

import (
	"archive/tar"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

func write(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	file := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), mode))
}

// source returns a context with a Dockerfile, a program in Go and other files.
func source(t *testing.T, dockerfile, ignored string, arguments map[string]string) Source {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "Dockerfile", dockerfile, 0o644)
	write(t, dir, ".dockerignore", ignored, 0o644)
	write(t, dir, "go.mod", "module example.com/program\n\ngo 1.24\n", 0o644)
	write(t, dir, "main.go", "package main\n\nvar version string\n\nfunc main() { println(version) }\n", 0o644)
	write(t, dir, "bundle/manifests/csv.yaml", "kind: ClusterServiceVersion\n", 0o600)
	write(t, dir, "bundle/tests/run", "#!/bin/sh\n", 0o700)
	return Source{Dockerfile: filepath.Join(dir, "Dockerfile"), Context: dir, Arguments: arguments}
}

func built(t *testing.T, s Source) v1.Image {
	t.Helper()
	img, err := Build(s)
	must(t, err)
	return img
}

// files returns the modes and contents of an image's files.
func files(t *testing.T, img v1.Image) (modes map[string]int64, contents map[string]string) {
	t.Helper()
	modes, contents = map[string]int64{}, map[string]string{}
	archive := tar.NewReader(mutate.Extract(img))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return modes, contents
		}
		must(t, err)
		if header.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(archive)
		must(t, err)
		modes[header.Name], contents[header.Name] = header.Mode, string(content)
	}
}

func TestBuildCopiesFilesAndConfigures(t *testing.T) {
	s := source(t, `# A comment.
ARG BASE=registry.invalid/opm
FROM ${BASE}
LABEL one=1 \
      two=a,b
COPY bundle/manifests /manifests/
COPY bundle/tests/run /bin/
COPY bundle/tests/run /start
COPY bundle/tests/run bundle/manifests/csv.yaml /both/
USER 1001
ENTRYPOINT ["/start", "now"]
CMD ["-v"]
`, "", map[string]string{"BASE": "scratch"})
	img := built(t, s)
	file, err := img.ConfigFile()
	must(t, err)
	config := file.Config
	if config.Labels["one"] != "1" || config.Labels["two"] != "a,b" || config.User != "1001" {
		t.Errorf("labels are %v and the user is %q", config.Labels, config.User)
	}
	if got := strings.Join(append(config.Entrypoint, config.Cmd...), " "); got != "/start now -v" {
		t.Errorf("it runs %q", got)
	}
	modes, _ := files(t, img)
	want := map[string]int64{"manifests/csv.yaml": 0o644, "bin/run": 0o755, "start": 0o755, "both/run": 0o755, "both/csv.yaml": 0o644}
	if !maps.Equal(modes, want) {
		t.Errorf("the files are %v, want %v", modes, want)
	}
	one, _ := img.Digest()
	two, _ := built(t, s).Digest()
	if one != two {
		t.Errorf("the same inputs gave %s and %s", one, two)
	}
}

func TestStageCompilesWithTheFlagsOfTheDockerfile(t *testing.T) {
	s := source(t, `FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /src
COPY go.mod ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH}
RUN go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/one . && \
    go build -trimpath -o /out/two .
FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/one /out/two /
COPY bundle/tests/run /
USER 65532:65532
`, "", map[string]string{"VERSION": "v9.8.7-test"})
	s.LocalBase = true
	modes, contents := files(t, built(t, s))
	delete(modes, "etc/ssl/certs/ca-certificates.crt") // if this machine has it
	if want := (map[string]int64{"etc/passwd": 0o644, "etc/group": 0o644, "one": 0o755, "two": 0o755, "run": 0o755}); !maps.Equal(modes, want) {
		t.Errorf("the files are %v, want %v", modes, want)
	}
	if !strings.Contains(contents["one"], "v9.8.7-test") || strings.Contains(contents["two"], "v9.8.7-test") {
		t.Error("the linker's flags were not those of the Dockerfile")
	}
}

func TestDockerignoreDecidesWhatIsCopied(t *testing.T) {
	for ignored, want := range map[string][]string{
		"Dockerfile\n.dockerignore\n":                {"bundle/manifests/csv.yaml", "bundle/tests/run", "go.mod", "main.go"},
		"*\n!bundle\n":                               {"bundle/manifests/csv.yaml", "bundle/tests/run"},
		"*\n!bundle/tests\n":                         {"bundle/tests/run"},
		"*\n!bundle\n!main.go\n**/*.yaml\n# comment": {"bundle/tests/run", "main.go"},
	} {
		modes, _ := files(t, built(t, source(t, "FROM scratch\nCOPY . /\n", ignored, nil)))
		if got := slices.Sorted(maps.Keys(modes)); !slices.Equal(got, want) {
			t.Errorf("with %q the files are %v, want %v", ignored, got, want)
		}
	}
	s := source(t, "FROM scratch\nCOPY . /\n", "", nil)
	write(t, s.Context, "Dockerfile.dockerignore", "*\n!go.mod\n", 0o644)
	if modes, _ := files(t, built(t, s)); len(modes) != 1 {
		t.Errorf("the Dockerfile's own .dockerignore does not count: the files are %v", modes)
	}
}

func TestBuildRejects(t *testing.T) {
	const stage = "FROM golang:1.26 AS build\n"
	for name, test := range map[string]struct{ dockerfile, want string }{
		"a command in the image":   {"FROM scratch\nRUN true", "RUN true: this needs docker or podman"},
		"a command that is not go": {stage + "RUN go version && rm -rf /", "RUN go version && rm -rf /: this needs docker or podman"},
		"a stage that has no go":   {"FROM alpine AS tools\nFROM scratch", "FROM alpine AS tools: this needs docker or podman"},
		"an ignored file":          {"FROM scratch\nCOPY ignored /", "copying ignored: the .dockerignore leaves nothing of it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t, test.dockerfile, "ignored\n", nil)
			write(t, s.Context, "ignored", "", 0o644)
			_, err := Build(s)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q in it", err, test.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
