package schemaedit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// longest is how many bytes of a value a description has.
const longest = 160

// nothing is the value of a missing field.
type nothing struct{}

// describe returns the differences of an edited spec, each at the deepest place.
func describe(spec, edited map[string]any) string {
	return strings.Join(changes("spec", spec, edited), "; ")
}

func changes(path string, before, after any) []string {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	switch before := before.(type) {
	case map[string]any:
		after, ok := after.(map[string]any)
		if !ok {
			break
		}
		var found []string
		for _, name := range union(before, after) {
			below := path + "." + name
			if strings.ContainsAny(name, "./ ") {
				below = fmt.Sprintf("%s[%s]", path, name)
			}
			found = append(found, changes(below, get(before, name), get(after, name))...)
		}
		return found
	case []any:
		after, ok := after.([]any)
		if !ok || len(before) != len(after) {
			break
		}
		var found []string
		for i := range before {
			found = append(found, changes(fmt.Sprintf("%s[%d]", path, i), before[i], after[i])...)
		}
		return found
	}
	return []string{fmt.Sprintf("%s: %s → %s", path, word(before), word(after))}
}

func get(from map[string]any, name string) any {
	if value, ok := from[name]; ok {
		return value
	}
	return nothing{}
}

// word formats a value, in quotes only where it could be mistaken for another value.
func word(value any) string {
	if value == (nothing{}) {
		return "none"
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	text := string(raw)
	if plain, ok := value.(string); ok && text == `"`+plain+`"` && plain != "" && plain != "none" && !strings.Contains(plain, " ") && !json.Valid([]byte(plain)) {
		text = plain
	}
	if len(text) > longest {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:longest], ""), len(text))
	}
	return text
}

func union(a, b map[string]any) []string {
	names := maps.Clone(a)
	maps.Copy(names, b)
	return sortedKeys(names)
}

func sortedKeys(of map[string]any) []string {
	return slices.Sorted(maps.Keys(of))
}
