package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// It may be a mount point.
func TestPruneKeepsTheFolderOfTheStore(t *testing.T) {
	for _, snapshot := range []string{".", "", "..", "/", "a/..", "../beside", "a"} {
		t.Run(snapshot, func(t *testing.T) {
			parent := t.TempDir()
			directory, beside := filepath.Join(parent, "store"), filepath.Join(parent, "beside")
			for _, dir := range []string{filepath.Join(directory, "a"), beside} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := Prune(wire.Store{Folder: directory}, snapshot); err != nil {
				t.Error(err)
			}
			for _, dir := range []string{directory, beside} {
				if _, err := os.Stat(dir); err != nil {
					t.Error(err)
				}
			}
			if _, err := os.Stat(filepath.Join(directory, "a")); (err == nil) == (snapshot == "a") {
				t.Errorf("the directory of the snapshot a: %v", err)
			}
		})
	}
}
