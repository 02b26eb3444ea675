package shard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// methodNames are the names of the methods in docs/changes.md.
var methodNames = map[rollout.Method]string{
	rollout.None:     "no shard is changed",
	rollout.Live:     "live",
	rollout.Restart:  "restart",
	rollout.Recreate: "recreate",
	rollout.Replace:  "**replace**",
}

func TestChangesPageHasTheTableOfFields(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "changes.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := "| field | method | |\n|---|---|---|\n"
	for _, f := range Fields {
		method := methodNames[f.Method]
		if f.Fallback != rollout.None {
			method += ", or " + methodNames[f.Fallback]
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", f.Name, method, f.Description)
	}
	if !strings.Contains(string(raw), table) {
		t.Errorf("docs/changes.md doesn't contain the table of fields, which is:\n\n%s", table)
	}
}
