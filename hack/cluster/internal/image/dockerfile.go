package image

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// step is one instruction of a Dockerfile.
type step struct {
	line int
	name string // upper case
	text string // all that follows the name, with variables expanded
}

// parse reads a Dockerfile. arguments override the defaults of its ARGs. An argument without an ARG is an error.
func parse(dockerfile string, arguments map[string]string) ([]step, error) {
	values := map[string]string{
		"TARGETOS": "linux", "TARGETARCH": runtime.GOARCH, "BUILDPLATFORM": "linux/" + runtime.GOARCH,
	}
	declared := map[string]bool{}
	var steps []step
	joined := ""
	for i, line := range strings.Split(dockerfile, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		joined += line
		if before, continues := strings.CutSuffix(joined, `\`); continues {
			joined = before
			continue
		}
		name, text, _ := strings.Cut(joined, " ")
		joined = ""
		s := step{line: i + 1, name: strings.ToUpper(name), text: os.Expand(strings.TrimSpace(text), func(variable string) string {
			variable, fallback, _ := strings.Cut(variable, ":-")
			if value := values[variable]; value != "" {
				return value
			}
			return fallback
		})}
		switch s.name {
		case "ARG":
			name, value, hasDefault := strings.Cut(s.text, "=")
			declared[name] = true
			if given, found := arguments[name]; found {
				values[name] = given
			} else if hasDefault {
				values[name] = value
			}
		default:
			steps = append(steps, s)
		}
	}
	for name := range arguments {
		if !declared[name] {
			return nil, fmt.Errorf("the Dockerfile has no ARG %s", name)
		}
	}
	return steps, nil
}

// words splits the text of a step: a JSON array, or words separated by spaces.
func (s step) words() (words []string, err error) {
	if words = strings.Fields(s.text); strings.HasPrefix(s.text, "[") {
		words = nil
		err = json.Unmarshal([]byte(s.text), &words)
	}
	if err == nil && len(words) == 0 {
		err = fmt.Errorf("%s is empty", s.name)
	}
	return words, err
}

// pairs splits the text of a step into KEY=VALUE.
func (s step) pairs() (map[string]string, error) {
	pairs := map[string]string{}
	for _, word := range strings.Fields(s.text) {
		key, value, found := strings.Cut(word, "=")
		if !found || strings.Contains(word, `"`) {
			return nil, fmt.Errorf("%s must be KEY=VALUE without quotes, not %s", s.name, word)
		}
		pairs[key] = value
	}
	return pairs, nil
}
