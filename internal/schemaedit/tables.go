package schemaedit

import (
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

//go:embed tables.yaml
var tablesFile []byte

var known = readTables(tablesFile)

// tables have information about fields beyond their schema, as tables.yaml explains.
type tables struct {
	Weights   map[string]int      `json:"weights"`
	Preferred map[string][]any    `json:"preferred"`
	Keys      map[string][]string `json:"keys"`
	Rejected  map[string][]any    `json:"rejected"`
	Doubtful  []doubtfulValue     `json:"doubtful"`
}

// doubtfulValue is a value that the API server accepts and the operator rejects.
type doubtfulValue struct {
	Field   string `json:"field"`
	Value   any    `json:"value"`
	Because string `json:"because"`
}

// readTables panics if it cannot read the tables, which are part of the program.
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

// of returns the entry of a place: that of its path or else that of the last part of it.
func of[T any](table map[string][]T, p *place) []T {
	if values, ok := table[p.path]; ok {
		return values
	}
	return table[p.last()]
}
