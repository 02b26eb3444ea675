package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// assemble makes the image that steps describe, with files of context and, where
// they are copied from a stage, of the folder that stands for it.
func assemble(steps []step, context fs.FS, stages map[string]fs.FS) (v1.Image, error) {
	steps, err := lastStage(steps, stages)
	if err != nil {
		return nil, err
	}
	image, err := base(steps[0].words[0])
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the base's configuration: %w", err)
	}
	config := file.Config.DeepCopy()
	var layers []v1.Layer
	for _, s := range steps[1:] {
		if s.name == "COPY" {
			layer, err := copied(s.words, context, stages)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", s.line, err)
			}
			layers = append(layers, layer)
			continue
		}
		if err := configure(config, s); err != nil {
			return nil, fmt.Errorf("line %d: %w", s.line, err)
		}
	}
	if image, err = mutate.AppendLayers(image, layers...); err != nil {
		return nil, fmt.Errorf("adding layers: %w", err)
	}
	if image, err = mutate.Config(image, *config); err != nil {
		return nil, fmt.Errorf("setting the configuration: %w", err)
	}
	return image, nil
}

// lastStage returns the steps of the stage that becomes the image. Those before
// it are left out, for which folders of stages have to stand.
func lastStage(steps []step, stages map[string]fs.FS) ([]step, error) {
	if len(steps) == 0 || steps[0].name != "FROM" {
		return nil, errors.New("it must begin with FROM")
	}
	last := 0
	for i, s := range steps {
		if s.name == "FROM" {
			last = i
		}
	}
	for _, s := range steps[:last] {
		if s.name != "FROM" {
			continue
		}
		name := stageName(s.words)
		if name == "" {
			return nil, fmt.Errorf("line %d: an earlier stage must have a name (FROM … AS build)", s.line)
		}
		if stages[name] == nil {
			return nil, fmt.Errorf("line %d: what stage %s makes is needed: give it by --stage %s=FOLDER, or start docker or podman and set CONTAINER_TOOL", s.line, name, name)
		}
	}
	if len(steps[last].words) != 1 {
		return nil, fmt.Errorf("line %d: the last FROM must name one image and nothing else", steps[last].line)
	}
	return steps[last:], nil
}

// stageName returns the name that a FROM gives its stage, empty if it gives none.
func stageName(words []string) string {
	if n := len(words); n >= 3 && strings.EqualFold(words[n-2], "AS") {
		return words[n-1]
	}
	return ""
}

// base returns the image that FROM names, fetched from its registry, or for
// "scratch" an empty one.
func base(reference string) (v1.Image, error) {
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if reference == "scratch" {
		file, err := empty.Image.ConfigFile()
		if err != nil {
			return nil, err
		}
		file = file.DeepCopy()
		file.OS, file.Architecture = platform.OS, platform.Architecture
		return mutate.ConfigFile(empty.Image, file)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, fmt.Errorf("reading FROM: %w", err)
	}
	image, err := remote.Image(ref, remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("fetching the base %s: %w", reference, err)
	}
	return image, nil
}

// configure does an instruction that adds no files.
func configure(config *v1.Config, s step) error {
	if len(s.words) == 0 {
		return fmt.Errorf("%s says nothing", s.name)
	}
	switch s.name {
	case "LABEL":
		if config.Labels == nil {
			config.Labels = map[string]string{}
		}
		for _, word := range s.words {
			key, value, found := strings.Cut(word, "=")
			if !found || strings.Contains(word, `"`) {
				return fmt.Errorf("LABEL must be key=value without quotes, not %s", word)
			}
			config.Labels[key] = value
		}
	case "USER":
		config.User = s.words[0]
	case "EXPOSE":
		if config.ExposedPorts == nil {
			config.ExposedPorts = map[string]struct{}{}
		}
		for _, port := range s.words {
			if !strings.Contains(port, "/") {
				port += "/tcp"
			}
			config.ExposedPorts[port] = struct{}{}
		}
	case "ENTRYPOINT":
		config.Entrypoint = s.words
	case "CMD":
		config.Cmd = s.words
	default:
		return fmt.Errorf("%s needs docker or podman: start its daemon, or set CONTAINER_TOOL", s.name)
	}
	return nil
}

// copied returns the layer of a COPY of one file or folder, of context or of a
// stage. Owner and times are left at zero, so that the same files give the same
// layer.
func copied(words []string, context fs.FS, stages map[string]fs.FS) (v1.Layer, error) {
	from := context
	if len(words) == 3 {
		if stage, found := strings.CutPrefix(words[0], "--from="); found {
			if from = stages[stage]; from == nil {
				return nil, fmt.Errorf("COPY is from %s, which is no stage", stage)
			}
			words = words[1:]
		}
	}
	if len(words) != 2 || strings.HasPrefix(words[0], "--") {
		return nil, errors.New("COPY must name one source and one target")
	}
	// A stage's paths are absolute; the folder that stands for it is its root.
	source, target := path.Clean(strings.TrimPrefix(words[0], "/")), strings.TrimPrefix(words[1], "/")
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	err := fs.WalkDir(from, source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := path.Join(target, strings.TrimPrefix(strings.TrimPrefix(file, source), "/"))
		if file == source && !entry.IsDir() && (target == "" || strings.HasSuffix(target, "/")) {
			inside = path.Join(target, path.Base(source))
		}
		return add(archive, from, file, inside, entry)
	})
	if err != nil {
		return nil, fmt.Errorf("copying %s: %w", words[0], err)
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil
	})
}

// add writes one file or folder into archive under the name inside.
func add(archive *tar.Writer, from fs.FS, file, inside string, entry fs.DirEntry) error {
	if inside == "" || inside == "." {
		return nil
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if entry.IsDir() {
		return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: inside + "/", Mode: 0o755})
	}
	content, err := fs.ReadFile(from, file)
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inside, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = archive.Write(content)
	return err
}
