package image

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// Source is what an image is built from.
type Source struct {
	Dockerfile string
	Context    string
	Arguments  map[string]string // of the Dockerfile's ARGs
	// LocalBase replaces the base image by names of users, a /tmp and this machine's certificates, for machines that can't reach
	// its registry.
	LocalBase bool
}

// Build builds an image for the architecture of this machine.
func Build(s Source) (v1.Image, error) {
	content, err := os.ReadFile(s.Dockerfile)
	if err != nil {
		return nil, fmt.Errorf("reading the Dockerfile: %w", err)
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
	b := builder{Source: s, ignored: ignored, work: work, base: empty.Image}
	for _, st := range parse(string(content), s.Arguments) {
		if err := b.do(st); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", s.Dockerfile, st.name, st.text, err)
		}
	}
	return onBase(b.base, b.config, b.root)
}

// step is one instruction of a Dockerfile.
type step struct {
	name, text string // variables in the text are expanded
}

var comment = regexp.MustCompile(`(?m)^\s*#.*\n`)

// parse reads a Dockerfile. arguments override the defaults of its ARGs.
func parse(dockerfile string, arguments map[string]string) []step {
	values := map[string]string{"TARGETOS": "linux", "TARGETARCH": runtime.GOARCH}
	var steps []step
	for line := range strings.Lines(strings.ReplaceAll(comment.ReplaceAllString(dockerfile, ""), "\\\n", "")) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = os.Expand(text, func(variable string) string {
			variable, fallback, _ := strings.Cut(variable, ":-")
			if value := values[variable]; value != "" {
				return value
			}
			return fallback
		})
		switch name {
		case "":
		case "ARG":
			name, value, hasDefault := strings.Cut(text, "=")
			if given, found := arguments[name]; found {
				values[name] = given
			} else if hasDefault {
				values[name] = value
			}
		default:
			steps = append(steps, step{name, text})
		}
	}
	return steps
}

// readIgnored reads the .dockerignore of the Dockerfile or, without one, of the context.
func readIgnored(s Source) (*patternmatcher.PatternMatcher, error) {
	content, err := os.ReadFile(s.Dockerfile + ".dockerignore")
	if errors.Is(err, fs.ErrNotExist) {
		content, err = os.ReadFile(filepath.Join(s.Context, ".dockerignore"))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("reading the .dockerignore: %w", err)
	}
	return patternmatcher.New(patterns)
}

// builder is the state between two steps.
type builder struct {
	Source
	ignored *patternmatcher.PatternMatcher
	work    string // has a folder for each stage

	// Of the current stage, whose files are in the folder root. It either compiles or becomes the image.
	compiles    bool
	root, dir   string
	environment []string
	base        v1.Image
	config      v1.Config
}

// stage returns the folder of a stage, which is "" for the one that becomes the image.
func (b *builder) stage(name string) string { return filepath.Join(b.work, "stage-"+name) }

var errDaemon = errors.New("this needs docker or podman: start its daemon, or set CONTAINER_TOOL")

func (b *builder) do(s step) error {
	switch {
	case s.name == "FROM":
		return b.from(strings.Fields(s.text))
	case s.name == "COPY":
		return b.copy(strings.Fields(s.text))
	case b.compiles:
		return b.compile(s)
	}
	return b.configure(s)
}

func (b *builder) from(words []string) (err error) {
	name, reference := "", words[len(words)-1]
	if n := len(words); n > 2 && words[n-2] == "AS" {
		name, reference = words[n-1], words[n-3]
	}
	b.compiles, b.root, b.dir, b.environment = name != "", b.stage(name), "/", nil
	if err := os.Mkdir(b.root, 0o755); err != nil {
		return err
	}
	switch {
	case b.compiles && !strings.HasPrefix(reference, "golang:"):
		return errDaemon
	case b.compiles || reference == "scratch":
		return nil
	case b.LocalBase:
		if err := writeBase(b.root); err != nil {
			return err
		}
		const certificates = "/etc/ssl/certs/ca-certificates.crt"
		if err := copyFile(certificates, filepath.Join(b.root, certificates)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if b.base, err = crane.Pull(reference, crane.WithPlatform(&v1.Platform{OS: "linux", Architecture: runtime.GOARCH})); err != nil {
		return fmt.Errorf("fetching the base image: %w", err)
	}
	file, err := b.base.ConfigFile()
	if err != nil {
		return fmt.Errorf("reading the base image's configuration: %w", err)
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
		b.environment = append(b.environment, strings.Fields(s.text)...)
		return nil
	case "RUN":
		for command := range strings.SplitSeq(s.text, "&&") {
			if !strings.HasPrefix(strings.TrimSpace(command), "go ") || strings.ContainsAny(command, ";|&`") {
				return errDaemon
			}
			if strings.HasSuffix(command, " mod download") {
				continue // "go build" downloads what the module cache of this machine lacks
			}
			cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, " -o /", ` -o "$STAGE"/`))
			cmd.Dir = filepath.Join(b.root, b.dir)
			cmd.Env = append(append(os.Environ(), "STAGE="+b.root, "GOWORK=off"), b.environment...)
			if output, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, output)
			}
		}
		return nil
	}
	return errDaemon
}

func (b *builder) configure(s step) error {
	switch s.name {
	case "LABEL":
		if b.config.Labels == nil {
			b.config.Labels = map[string]string{}
		}
		for _, pair := range strings.Fields(s.text) {
			key, value, _ := strings.Cut(pair, "=")
			b.config.Labels[key] = value
		}
		return nil
	case "USER":
		b.config.User = s.text
		return nil
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(s.text), &b.config.Entrypoint)
	case "CMD":
		return json.Unmarshal([]byte(s.text), &b.config.Cmd)
	}
	return errDaemon
}

// copy copies files of the context, or of a stage, into the current stage.
func (b *builder) copy(words []string) error {
	from, ignored := b.Context, b.ignored
	if stage, found := strings.CutPrefix(words[0], "--from="); found {
		from, ignored, words = b.stage(stage), nil, words[1:]
	}
	sources, target := words[:len(words)-1], words[len(words)-1]
	if !path.IsAbs(target) {
		target = path.Join(b.dir, target) + "/"
	}
	for _, source := range sources {
		if err := copyTree(from, path.Clean(strings.TrimPrefix(source, "/")), b.root, target, ignored); err != nil {
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
		return errors.Join(err, copyFile(filepath.Join(from, file), filepath.Join(to, target, inside)))
	})
	if err == nil && !found {
		err = errors.New("the .dockerignore leaves nothing of it")
	}
	return err
}
