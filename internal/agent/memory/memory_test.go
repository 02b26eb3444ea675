package memory

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTableOfAHandoverNeedsRoomInTheContainer(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		free    int64
		limited bool
	}{
		"limited":         {map[string]string{"memory.max": "1000\n", "memory.current": "400\n"}, 600, true},
		"not limited":     {map[string]string{"memory.max": "max\n", "memory.current": "400\n"}, 0, false},
		"other versions":  {nil, 0, false},
		"over its limits": {map[string]string{"memory.max": "1000\n", "memory.current": "1400\n"}, -400, true},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if free, limited := freeInCgroup(dir); free != c.free || limited != c.limited {
			t.Errorf("%s: %d free, limited %t", name, free, limited)
		}
	}
}
