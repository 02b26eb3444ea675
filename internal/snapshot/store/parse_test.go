package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestParseFolderOrURL(t *testing.T) {
	dir := t.TempDir()
	for location, want := range map[string]wire.Store{
		dir: {Folder: dir},
		"s3://backups/a/b/?endpoint=https://s3.example:9000&region=eu-1&ca=/ca.crt": {S3: &wire.S3{
			Bucket: "backups", Prefix: "a/b", Endpoint: "https://s3.example:9000", Region: "eu-1", CAFile: "/ca.crt"}},
		"s3://backups": {S3: &wire.S3{Bucket: "backups"}},
	} {
		got, err := Parse(location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", location, diff)
		}
	}
}
