package memcached

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
)

// classWords tell a person what a class means for a shard.
var classWords = map[rollout.Class]string{
	rollout.Nothing:  "no shard is touched",
	rollout.Live:     "live",
	rollout.Restart:  "restart",
	rollout.Recreate: "recreate",
	rollout.Replace:  "**replace**",
}

func TestTheUserGuideHasTheTableOfFields(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "user-guide.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := "| field | way | |\n|---|---|---|\n"
	for _, f := range fields {
		way := classWords[f.class]
		if f.may != rollout.Nothing {
			way += ", or " + classWords[f.may]
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", f.name, way, f.how)
	}
	if !strings.Contains(string(raw), table) {
		t.Errorf("docs/user-guide.md does not have the table of how a change reaches a shard; it is:\n\n%s", table)
	}
}
