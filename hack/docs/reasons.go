package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// reason is a reason, a gate or the reason of an event.
type reason struct {
	value   string
	meaning string
	action  string
}

// described matches the constants that the page describes.
var described = regexp.MustCompile("^(Reason|Gate|Event)")

// readReasons returns the reasons of the API, from the comments of their constants:
//
//	// ReasonPaused: spec.paused is true.
//	//
//	// Do: set spec.paused to false.
//	ReasonPaused = "Paused"
//
// One that is a gate or an event too is described once: the other constants of its value name the described one.
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
				constant := spec.(*ast.ValueSpec)
				name := constant.Names[0].Name
				if !described.MatchString(name) {
					continue
				}
				literal, ok := constant.Values[0].(*ast.BasicLit)
				if !ok {
					continue
				}
				value := strings.Trim(literal.Value, `"`)
				if slices.ContainsFunc(all, func(r reason) bool { return r.value == value }) {
					return nil, fmt.Errorf("%s describes %s again: name the constant that does", name, value)
				}
				meaning, action, found := strings.Cut(constant.Doc.Text(), "\nDo: ")
				meaning, named := strings.CutPrefix(oneLine(meaning), name+": ")
				if action = oneLine(action); !found || !named || action == "" {
					return nil, fmt.Errorf(`%s needs a comment "%s: what it means" with a paragraph "Do: what to do"`, name, name)
				}
				all = append(all, reason{value, sentence(meaning), sentence(action)})
			}
		}
	}
	return all, nil
}

// actionsByReason returns what to do about each reason, for the plugin.
func actionsByReason(all []reason) (string, error) {
	actions := map[string]string{}
	for _, r := range all {
		actions[r.value] = r.action
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

// harmless reports whether a reason has a row in the last table and no section.
func (r reason) harmless() bool { return r.action == "Nothing." || r.action == "Wait." }

const tableOfHarmless = "| reason | meaning |\n|---|---|\n"

// section matches what the page says about a reason.
var section = regexp.MustCompile("(?m)^### `(\\w+)`\n(?:(?:[^#\n].*)?\n)*")

// troubleshootingPage returns the page with the texts of all reasons below their headings, and with the last table.
func troubleshootingPage(page string, all []reason) (string, error) {
	sections, rows := map[string]string{}, ""
	for _, r := range all {
		if r.harmless() {
			rows += fmt.Sprintf("| `%s` | %s |\n", r.value, r.meaning)
		} else {
			sections[r.value] = fmt.Sprintf("### `%s`\n\n%s\n\n**Do:** %s\n\n", r.value, r.meaning, r.action)
		}
	}
	page = section.ReplaceAllStringFunc(page, func(old string) string {
		value := section.FindStringSubmatch(old)[1]
		text := sections[value] // none if the reason doesn't exist any more
		delete(sections, value)
		return text
	})
	for value := range sections {
		return "", fmt.Errorf("a reason has no heading: write \"### `%s`\" where readers look for it", value)
	}
	text, _, found := strings.Cut(page, tableOfHarmless)
	if !found {
		return "", fmt.Errorf("no table begins with\n%s", tableOfHarmless)
	}
	return text + tableOfHarmless + rows, nil
}
