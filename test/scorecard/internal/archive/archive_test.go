package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

var folder = fstest.MapFS{
	"manifests/csv.yaml":            {Data: []byte("kind: ClusterServiceVersion\n")},
	"metadata/annotations.yaml":     {Data: []byte("annotations: {}\n")},
	"tests/scorecard/config.yaml":   {Data: []byte("stages: []\n"), Mode: 0o600},
	"tests/scorecard/nothing":       {},
	"tests/scorecard/empty/.hidden": {Data: []byte("x")},
}

func TestWhatIsPackedIsUnpacked(t *testing.T) {
	packed, err := Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := Unpack(bytes.NewReader(packed), to); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = fs.WalkDir(os.DirFS(to), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(filepath.Join(to, name))
		if want := folder[name]; want == nil || !bytes.Equal(content, want.Data) {
			t.Errorf("%s holds %q, it was packed from %v", name, content, want)
		}
		return err
	})
	if err != nil || files != len(folder) {
		t.Errorf("%d of %d files were unpacked, error %v", files, len(folder), err)
	}
}

func TestTheSameFilesGiveTheSameBytes(t *testing.T) {
	one, err := Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Pack(folder)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("packed twice, they differ")
	}
}

func TestUnpackRefuses(t *testing.T) {
	for what, bad := range map[string]struct {
		header tar.Header
		want   string
	}{
		"a name that leads out": {tar.Header{Typeflag: tar.TypeReg, Name: "../out"}, "escapes"},
		"an absolute name":      {tar.Header{Typeflag: tar.TypeReg, Name: "/etc/passwd"}, "escapes"},
		"a folder outside":      {tar.Header{Typeflag: tar.TypeDir, Name: "../out/"}, "escapes"},
		"a link":                {tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: "/etc"}, "neither a file nor a folder"},
	} {
		t.Run(what, func(t *testing.T) {
			var packed bytes.Buffer
			zip := gzip.NewWriter(&packed)
			out := tar.NewWriter(zip)
			if err := out.WriteHeader(&bad.header); err != nil {
				t.Fatal(err)
			}
			_, _ = out.Close(), zip.Close()
			err := Unpack(&packed, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("the error is %v, want %q in it", err, bad.want)
			}
		})
	}
	if err := Unpack(strings.NewReader("no archive"), t.TempDir()); err == nil {
		t.Error("what is no archive is unpacked")
	}
}
