package snapshot

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
	"github.com/memcached-operator/memcached-operator/internal/store"
)

// Whoever finds a manifest finds all that it tells of.

func TestASnapshotWhoseChunksAreGoneIsNotCommitted(t *testing.T) {
	manifest := someManifest()
	task := snapshotapi.Task{ID: manifest.TaskID, Path: "s"}
	for name, c := range map[string]struct {
		objects map[string]string
		whole   bool
	}{
		"they are there":          {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "one"}, true},
		"one is gone":             {map[string]string{"s/a1b2/000000/000000000.zst": "zero"}, false},
		"one is cut short":        {map[string]string{"s/a1b2/000000/000000000.zst": "zero", "s/a1b2/000000/000000001.zst": "o"}, false},
		"another pod took them":   {nil, false},
		"they are of another try": {map[string]string{"s/ffff/000000/000000000.zst": "zero", "s/ffff/000000/000000001.zst": "one"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := memblob.OpenBucket(nil)
			for object, content := range c.objects {
				if err := bucket.WriteAll(t.Context(), object, []byte(content), nil); err != nil {
					t.Fatal(err)
				}
			}
			err := commit(t.Context(), bucket, task, someManifest())
			f := snapshotapi.AsFailure(err)
			if c.whole != (err == nil) || err != nil && (f == nil || f.Reason != v1alpha1.ReasonStoreFailed || f.Final) {
				t.Errorf("%v", err)
			}
			there, err := bucket.Exists(t.Context(), path.Join("s", ManifestName))
			if err != nil || there != c.whole {
				t.Errorf("there is a manifest: %v, %v", there, err)
			}
		})
	}
}

func TestADeletedSnapshotLeavesThoseBesideIt(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	beside := []string{"daily/2", "daily/10/manifest.json", "daily/1.old/manifest.json", "weekly/1/manifest.json"}
	for _, object := range append(slices.Clone(beside), "daily/1/manifest.json", "daily/1/a1b2/000000/000000000.zst") {
		if err := bucket.WriteAll(t.Context(), object, []byte("x"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := Delete(t.Context(), bucket, "daily/1"); err != nil {
		t.Fatal(err)
	}
	for _, object := range beside {
		if there, err := bucket.Exists(t.Context(), object); err != nil || !there {
			t.Errorf("%s was deleted too, %v", object, err)
		}
	}
	if some, err := holdsAnything(t.Context(), bucket, "daily/1"); err != nil || some {
		t.Errorf("something of it is left: %v, %v", some, err)
	}
}

// A deletion may be killed at any moment.
func TestTheManifestIsDeletedFirst(t *testing.T) {
	var lock sync.Mutex
	objects := []string{"s/a1b2/000000/000000000.zst", "s/a1b2/000000/000000001.zst", "s/manifest.json"}
	var deleted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lock.Lock()
		defer lock.Unlock()
		if r.Method == http.MethodDelete {
			name := strings.TrimPrefix(r.URL.Path, "/bucket/")
			objects = slices.DeleteFunc(objects, func(o string) bool { return o == name })
			deleted = append(deleted, name)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		type content struct {
			Key          string
			Size         int
			LastModified time.Time
			ETag         string
		}
		var list struct {
			XMLName  xml.Name `xml:"ListBucketResult"`
			Contents []content
		}
		for _, object := range objects {
			if strings.HasPrefix(object, r.URL.Query().Get("prefix")) {
				list.Contents = append(list.Contents, content{object, 1, time.Unix(0, 0).UTC(), `"etag"`})
			}
		}
		w.Header().Set("Content-Type", "application/xml")
		_ = xml.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket, err := store.Open(t.Context(), snapshotapi.Store{S3: &snapshotapi.S3{Bucket: "bucket", Endpoint: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if err := Delete(t.Context(), bucket, "s"); err != nil {
		t.Fatal(err)
	}
	if len(objects) > 0 || len(deleted) < 3 || deleted[0] != "s/manifest.json" {
		t.Errorf("deleted were, in this order, %q; there still are %q", deleted, objects)
	}
}
