package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// step is one instruction of a Dockerfile: its upper-case name and its words.
type step struct {
	line  int
	name  string
	words []string
}

// parse reads a Dockerfile. arguments override the defaults of its ARGs; one
// that no ARG names is an error.
func parse(text string, arguments map[string]string) ([]step, error) {
	values := map[string]string{}
	var steps []step
	joined := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		joined += line
		if before, continues := strings.CutSuffix(joined, `\`); continues {
			joined = before
			continue
		}
		instruction, rest, _ := strings.Cut(joined, " ")
		joined = ""
		parsed := step{line: i + 1, name: strings.ToUpper(instruction)}
		rest = os.Expand(strings.TrimSpace(rest), func(name string) string { return values[name] })
		var err error
		if parsed.words, err = split(rest); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if parsed.name == "ARG" {
			name, value, _ := strings.Cut(rest, "=")
			if given, found := arguments[name]; found {
				value = given
			}
			values[name] = value
			continue
		}
		steps = append(steps, parsed)
	}
	for name := range arguments {
		if _, found := values[name]; !found {
			return nil, fmt.Errorf("there is no ARG %s", name)
		}
	}
	return steps, nil
}

// split returns the words of an instruction, written as a JSON array or apart by
// spaces.
func split(rest string) ([]string, error) {
	if !strings.HasPrefix(rest, "[") {
		return strings.Fields(rest), nil
	}
	var words []string
	if err := json.Unmarshal([]byte(rest), &words); err != nil {
		return nil, fmt.Errorf("reading %s: %w", rest, err)
	}
	return words, nil
}
