package schemaedit

import (
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

//go:embed tables.yaml
var tablesFile []byte

// defaultWeight is that of a field of the spec that the tables do not know.
const defaultWeight = 4

// known is what the tables say.
var known = readTables(tablesFile)

// tables are what is known of fields beyond their schema; tables.yaml says what is in
// them.
type tables struct {
	Weights   map[string]int      `json:"weights"`
	Preferred map[string][]any    `json:"preferred"`
	Keys      map[string][]string `json:"keys"`
	Refused   map[string][]any    `json:"refused"`
	Doubtful  []doubt             `json:"doubtful"`
}

// doubt is a value that the API server takes and that is refused later.
type doubt struct {
	Field   string `json:"field"`
	Value   any    `json:"value"`
	Because string `json:"because"`
}

// readTables panics on tables that cannot be read: they are a part of the program.
func readTables(raw []byte) tables {
	var t tables
	text, err := yaml.YAMLToJSONStrict(raw)
	if err == nil {
		err = json.Unmarshal(text, &t) // keeps whole numbers whole
	}
	if err != nil {
		panic(fmt.Sprintf("reading tables.yaml: %v", err))
	}
	return t
}

// of returns what a table says of a place: by its path, or else by the end of it.
func of[T any](table map[string][]T, p *place) []T {
	if values, ok := table[p.path]; ok {
		return values
	}
	return table[p.last()]
}
