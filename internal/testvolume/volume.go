// Package testvolume writes volumes as the kubelet does, for tests.
package testvolume

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Volume is one of a Secret or of the downward API.
type Volume struct {
	Dir        string
	t          *testing.T
	generation int
}

// New returns a volume with files, by their names.
func New(t *testing.T, content map[string][]byte) *Volume {
	t.Helper()
	v := &Volume{Dir: t.TempDir(), t: t}
	v.Put(content)
	return v
}

// Put replaces the content and deletes the previous one.
func (v *Volume) Put(content map[string][]byte) {
	v.t.Helper()
	v.generation++
	name := "..generation-" + strconv.Itoa(v.generation)
	err := os.Mkdir(filepath.Join(v.Dir, name), 0o755)
	for file, text := range content {
		err = errors.Join(err, os.WriteFile(filepath.Join(v.Dir, name, file), text, 0o600))
	}
	link := filepath.Join(v.Dir, "..data_tmp")
	err = errors.Join(err, os.Symlink(name, link), os.Rename(link, filepath.Join(v.Dir, "..data")),
		os.RemoveAll(filepath.Join(v.Dir, "..generation-"+strconv.Itoa(v.generation-1))))
	if err != nil {
		v.t.Fatal(err)
	}
}
