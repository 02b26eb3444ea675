// Package image builds container images without a container daemon, from Dockerfiles and from folders.
//
// It interprets the Dockerfiles of this project: instructions that copy files and configure the image, and stages
// that compile with Go, which run "go build" with the Go of this machine. Every other instruction is an error, so
// that no image lacks a step. The same inputs give the same image.
package image

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Source is what an image is built from.
type Source struct {
	Dockerfile string
	Context    string
	Arguments  map[string]string // of the Dockerfile's ARGs
	// LocalBase is a folder that replaces the base image, for machines that can't reach its registry.
	LocalBase string
}

// Build builds an image for the architecture of this machine.
func Build(s Source) (v1.Image, error) {
	content, err := os.ReadFile(s.Dockerfile)
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
	}
	steps, err := parse(string(content), s.Arguments)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Dockerfile, err)
	}
	ignored, err := readIgnored(s)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	b := builder{Source: s, ignored: ignored, work: work, stages: map[string]string{}}
	for _, st := range steps {
		if err := b.do(st); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", s.Dockerfile, st.line, err)
		}
	}
	if b.image == nil {
		return nil, fmt.Errorf("%s: the last stage must have no name", s.Dockerfile)
	}
	return withLayers(b.image, b.config, b.layers...)
}

// readIgnored reads the .dockerignore of the Dockerfile or, without one, of the context.
func readIgnored(s Source) (*patternmatcher.PatternMatcher, error) {
	file := s.Dockerfile + ".dockerignore"
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		file = filepath.Join(s.Context, ".dockerignore")
	}
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return patternmatcher.New(patterns)
}

// builder is the state between two steps.
type builder struct {
	Source
	ignored *patternmatcher.PatternMatcher
	work    string
	stages  map[string]string // folders of the stages that compile, by name

	// Of the current stage, which either compiles in the folder root or becomes the image.
	root, dir   string
	environment []string
	image       v1.Image
	config      v1.Config
	layers      []string // folders
}

func (b *builder) do(s step) error {
	switch {
	case s.name == "FROM":
		return b.from(s)
	case s.name == "COPY":
		return b.copy(s)
	case b.image == nil:
		return b.compile(s)
	}
	return configure(&b.config, s)
}

func (b *builder) from(s step) error {
	if b.image != nil {
		return errors.New("an earlier stage must have a name")
	}
	words, err := s.words()
	if err != nil {
		return err
	}
	b.root, b.dir, b.environment = "", "/", nil
	if n := len(words); n >= 3 && strings.EqualFold(words[n-2], "AS") {
		if base := words[n-3]; base != "golang" && !strings.HasPrefix(base, "golang:") {
			return fmt.Errorf("a stage of %s needs docker or podman: start its daemon, or set CONTAINER_TOOL", base)
		}
		b.root = filepath.Join(b.work, "stage-"+words[n-1])
		b.stages[words[n-1]] = b.root
		return os.MkdirAll(b.root, 0o755)
	}
	if words[0] == "scratch" || b.LocalBase != "" {
		b.image, b.config = empty.Image, v1.Config{}
		if words[0] != "scratch" {
			b.layers = []string{b.LocalBase}
		}
		return nil
	}
	reference, err := name.ParseReference(words[0])
	if err != nil {
		return err
	}
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	b.image, err = remote.Image(reference, remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform))
	if err != nil {
		return fmt.Errorf("fetching the base image %s: %w", reference, err)
	}
	file, err := b.image.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the configuration of %s: %w", reference, err)
	}
	b.config = *file.Config.DeepCopy()
	return nil
}

// compile runs a step of a stage that compiles. Paths of the stage are paths below b.root.
func (b *builder) compile(s step) error {
	switch s.name {
	case "WORKDIR":
		b.dir = path.Join(b.dir, s.text)
		return os.MkdirAll(filepath.Join(b.root, b.dir), 0o755)
	case "ENV":
		pairs, err := s.pairs()
		for key, value := range pairs {
			b.environment = append(b.environment, key+"="+value)
		}
		return err
	case "RUN":
		for command := range strings.SplitSeq(s.text, "&&") {
			if !strings.HasPrefix(strings.TrimSpace(command), "go ") || strings.ContainsAny(command, ";|&`") {
				return fmt.Errorf("RUN %s needs docker or podman: start its daemon, or set CONTAINER_TOOL", strings.TrimSpace(command))
			}
			if strings.HasSuffix(command, " mod download") {
				continue // "go build" downloads what the module cache of this machine lacks
			}
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, " -o /", ` -o "$STAGE"/`))
			cmd.Dir = filepath.Join(b.root, b.dir)
			cmd.Env = append(append(os.Environ(), "STAGE="+b.root, "GOWORK=off"), b.environment...)
			if output, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.TrimSpace(command), err, output)
			}
		}
		return nil
	}
	return fmt.Errorf("%s in a stage needs docker or podman: start its daemon, or set CONTAINER_TOOL", s.name)
}

func configure(config *v1.Config, s step) error {
	words, err := s.words()
	if err != nil {
		return err
	}
	switch s.name {
	case "LABEL":
		pairs, err := s.pairs()
		if config.Labels == nil {
			config.Labels = map[string]string{}
		}
		maps.Copy(config.Labels, pairs)
		return err
	case "USER":
		config.User = words[0]
	case "ENTRYPOINT":
		config.Entrypoint = words
	case "CMD":
		config.Cmd = words
	default:
		return fmt.Errorf("%s needs docker or podman: start its daemon, or set CONTAINER_TOOL", s.name)
	}
	return nil
}

// copy copies files of the context, or of a stage, into the stage that compiles or into a layer of the image.
func (b *builder) copy(s step) error {
	words, err := s.words()
	if err != nil {
		return err
	}
	from, ignored := b.Context, b.ignored
	if len(words) > 0 {
		if stage, found := strings.CutPrefix(words[0], "--from="); found {
			from, ignored, words = b.stages[stage], nil, words[1:]
			if from == "" {
				return fmt.Errorf("COPY is from %s, which is not a stage", stage)
			}
		}
	}
	if len(words) < 2 || strings.HasPrefix(words[0], "--") {
		return errors.New("COPY must name sources and one target")
	}
	sources, target := words[:len(words)-1], words[len(words)-1]
	to := b.root
	if b.image != nil {
		to = filepath.Join(b.work, fmt.Sprintf("layer-%d", len(b.layers)))
		b.layers = append(b.layers, to)
	}
	if !path.IsAbs(target) {
		target = path.Join(b.dir, target) + "/"
	}
	for _, source := range sources {
		if err := copyTree(from, path.Clean(strings.TrimPrefix(source, "/")), to, target, ignored); err != nil {
			return fmt.Errorf("copying %s: %w", source, err)
		}
	}
	return nil
}

// copyTree copies a file, or the contents of a folder.
func copyTree(from, source, to, target string, ignored *patternmatcher.PatternMatcher) error {
	found := false
	err := fs.WalkDir(os.DirFS(from), source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ignored != nil {
			skip, err := ignored.MatchesOrParentMatches(file)
			if err != nil {
				return err
			}
			if skip {
				return nil // a later pattern may keep a part of a folder
			}
		}
		if entry.IsDir() {
			return nil
		}
		found = true
		inside, err := filepath.Rel(source, file)
		if file == source && strings.HasSuffix(target, "/") {
			inside = path.Base(source)
		}
		return errors.Join(err, CopyFile(filepath.Join(from, file), filepath.Join(to, target, inside)))
	})
	if err == nil && !found {
		err = errors.New("the .dockerignore leaves nothing of it")
	}
	return err
}

// CopyFile copies a file with its mode, and follows links. Only its owner can write: in a checkout, that depends on the umask.
func CopyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()&^0o022)
}
