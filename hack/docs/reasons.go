package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// reason is a reason, a gate or the reason of an event.
type reason struct {
	value   string
	group   string // the comment of its block of constants
	meaning string
	action  string
}

// prefixes of the constants that the page describes.
var prefixes = []string{"Reason", "Gate", "Event"}

// readReasons returns the reasons of the API, from the comments of their constants:
//
//	// ReasonPaused: spec.paused is true.
//	//
//	// Do: set spec.paused to false.
//	ReasonPaused = "Paused"
func readReasons(directory string) ([]reason, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*_types.go"))
	if err != nil {
		return nil, fmt.Errorf("listing the API's files: %w", err)
	}
	var all []reason
	for _, path := range append([]string{filepath.Join(directory, "conditions.go")}, files...) {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("parsing the API: %w", err)
		}
		for _, declaration := range file.Decls {
			block, ok := declaration.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				found, err := readReason(oneLine(block.Doc.Text()), spec.(*ast.ValueSpec))
				if err != nil {
					return nil, err
				}
				all = append(all, found...)
			}
		}
	}
	return all, nil
}

// readReason returns the reason that a constant defines, or none.
func readReason(group string, spec *ast.ValueSpec) ([]reason, error) {
	name := spec.Names[0].Name
	if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return nil, nil
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return nil, fmt.Errorf("the value of %s is not a string", name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil, fmt.Errorf("the value of %s: %w", name, err)
	}
	meaning, action, found := strings.Cut(spec.Doc.Text(), "\nDo: ")
	meaning, named := strings.CutPrefix(oneLine(meaning), name+": ")
	if action = oneLine(action); !found || !named || action == "" {
		return nil, fmt.Errorf(`%s needs a comment "%s: what it means" with a paragraph "Do: what to do"`, name, name)
	}
	return []reason{{value: value, group: group, meaning: sentence(meaning), action: sentence(action)}}, nil
}

// actionsByReason returns what to do about each reason, for the plugin.
func actionsByReason(all []reason) (string, error) {
	actions := map[string]string{}
	for _, r := range all {
		if actions[r.value] == "" { // as on the page, the first group counts
			actions[r.value] = r.action
		}
	}
	text, err := json.MarshalIndent(actions, "", "  ")
	return string(text) + "\n", err
}

// sentence starts a text with a capital letter, unless it starts with the name of a field.
func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if strings.ContainsAny(first, ".:") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

//go:embed troubleshooting.md.tmpl
var troubleshooting string

// harmless reports whether a reason has a row in the last table and no section.
func (r reason) harmless() bool { return r.action == "Nothing." || r.action == "Wait." }

// troubleshootingPage returns the page with all reasons. Each one has one section, in the
// first group that has it, or one row.
func troubleshootingPage(all []reason) (string, error) {
	written := map[string]bool{}
	section := func(group string) (string, error) {
		var text strings.Builder
		found := false
		for _, r := range all {
			if !strings.HasPrefix(r.group, group) {
				continue
			}
			found = true
			if !written[r.value] && !r.harmless() {
				fmt.Fprintf(&text, "### `%s`\n\n%s\n\n**Do:** %s\n\n", r.value, r.meaning, r.action)
			}
			written[r.value] = true
		}
		if !found {
			return "", fmt.Errorf("no reason belongs to %q", group)
		}
		return strings.TrimSpace(text.String()), nil
	}
	rows := func() string {
		var text strings.Builder
		for i, r := range all {
			if r.harmless() && !slices.ContainsFunc(all[:i], func(other reason) bool { return other.value == r.value }) {
				fmt.Fprintf(&text, "| `%s` | %s |\n", r.value, r.meaning)
			}
		}
		return text.String()
	}
	page, err := template.New("").Funcs(template.FuncMap{"reasons": section, "harmless": rows}).Parse(troubleshooting)
	if err != nil {
		return "", fmt.Errorf("parsing the template: %w", err)
	}
	var text strings.Builder
	if err := page.Execute(&text, nil); err != nil {
		return "", fmt.Errorf("writing the page: %w", err)
	}
	for _, r := range all {
		if !written[r.value] {
			return "", fmt.Errorf("troubleshooting.md.tmpl has no section for %q, the group of %s", r.group, r.value)
		}
	}
	return text.String(), nil
}
