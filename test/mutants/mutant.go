package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mutant is a change that breaks the code.
type mutant struct {
	// name says which property it breaks, and area which part of the list it is of.
	name, area string
	// file that is changed, from the root of the repository.
	file string
	// from is the text that stands once in the file, and to what takes its place.
	from, to string
	// tests that are to notice.
	tests []tests
}

// tests are those of a package.
type tests struct {
	// pkg is the package's folder from the root of the repository, such as ./agent.
	pkg string
	// names of the tests; none is all.
	names []string
}

func (t tests) String() string { return strings.Join(append([]string{t.pkg}, t.names...), " ") }

//go:embed list/*.txt
var list embed.FS

// mutants returns the whole list.
func mutants() ([]mutant, error) {
	var all []mutant
	entries, err := list.ReadDir("list")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := list.ReadFile("list/" + entry.Name())
		if err != nil {
			return nil, err
		}
		found, err := parse(strings.TrimSuffix(entry.Name(), ".txt"), string(text))
		if err != nil {
			return nil, fmt.Errorf("list/%s: %w", entry.Name(), err)
		}
		all = append(all, found...)
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			return nil, fmt.Errorf("two mutants are named %q", m.name)
		}
		names[m.name] = true
	}
	return all, nil
}

// parse reads the mutants of an area.
func parse(area, text string) ([]mutant, error) {
	var all []mutant
	var lines []string
	for number, line := range strings.Split(text+"\n", "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) != "":
			lines = append(lines, line)
		case len(lines) > 0:
			m, err := parseMutant(lines)
			if err != nil {
				return nil, fmt.Errorf("the mutant that ends before line %d: %w", number+1, err)
			}
			m.area = area
			all = append(all, m)
			lines = nil
		}
	}
	return all, nil
}

// parseMutant reads the lines of one mutant.
func parseMutant(lines []string) (mutant, error) {
	m := mutant{name: lines[0]}
	var from, to []string
	for _, line := range lines[1:] {
		if text, ok := strings.CutPrefix(line, "-"); ok {
			from = append(from, text)
			continue
		}
		if text, ok := strings.CutPrefix(line, "+"); ok {
			to = append(to, text)
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words := strings.Fields(rest)
		switch {
		case word == "in" && len(words) == 1 && m.file == "":
			m.file = words[0]
		case word == "tests" && len(words) > 0:
			m.tests = append(m.tests, tests{pkg: words[0], names: words[1:]})
		default:
			return mutant{}, fmt.Errorf("%q is none of: in FILE, once; tests PACKAGE [TEST…]; -TEXT; +TEXT", line)
		}
	}
	m.from, m.to = strings.Join(from, "\n"), strings.Join(to, "\n")
	switch {
	case m.file == "":
		return mutant{}, errors.New("it names no file")
	case len(m.tests) == 0:
		return mutant{}, errors.New("it names no tests")
	case m.from == "":
		return mutant{}, errors.New("it names no text to replace")
	case m.from == m.to:
		return mutant{}, errors.New("it changes nothing")
	}
	return m, nil
}

// mutated returns the file's text with the change. root is the repository's.
func (m mutant) mutated(root string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", m.misfit(err)
	}
	text := string(raw)
	if n := strings.Count(text, m.from); n != 1 {
		return "", m.misfit(fmt.Errorf("%s holds the text that is to be replaced %d times, not once:\n%s", m.file, n, m.from))
	}
	return strings.Replace(text, m.from, m.to, 1), nil
}

func (m mutant) misfit(err error) error {
	return fmt.Errorf("mutant %q no longer fits the code: %w", m.name, err)
}

// module returns the folder of the module that a folder of the repository is in, and
// the rest of the path, both as the go command takes them.
func module(root, folder string) (module, pkg string, err error) {
	folder = filepath.Clean(folder)
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(root, at, "go.mod")); err == nil {
			rest, err := filepath.Rel(at, folder)
			return filepath.Join(root, at), "./" + rest, err
		}
		if at == "." || filepath.IsAbs(at) {
			return "", "", fmt.Errorf("%s is in no module", folder)
		}
	}
}

// pattern returns what -run is to be for tests of these names; empty for all.
func pattern(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// union returns for each package the tests that any of the mutants names.
func union(all []mutant) []tests {
	var found []tests
	for _, m := range all {
		for _, t := range m.tests {
			i := slices.IndexFunc(found, func(f tests) bool { return f.pkg == t.pkg })
			switch {
			case i < 0:
				found = append(found, tests{t.pkg, slices.Clone(t.names)})
			case len(found[i].names) == 0 || len(t.names) == 0:
				found[i].names = nil
			default:
				found[i].names = append(found[i].names, t.names...)
			}
		}
	}
	for i := range found {
		slices.Sort(found[i].names)
		found[i].names = slices.Compact(found[i].names)
	}
	return found
}
