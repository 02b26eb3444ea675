package format

import (
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestDeleteKeepsOtherSnapshots(t *testing.T) {
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
	if some, err := containsObjects(t.Context(), bucket, "daily/1"); err != nil || some {
		t.Errorf("objects of it are left: %v, %v", some, err)
	}
}

// A deletion may be killed at any moment.
func TestDeleteDeletesTheManifestFirst(t *testing.T) {
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
	bucket, err := store.Open(t.Context(), wire.Store{S3: &wire.S3{Bucket: "bucket", Endpoint: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	if err := Delete(t.Context(), bucket, "s"); err != nil {
		t.Fatal(err)
	}
	if len(objects) > 0 || len(deleted) < 3 || deleted[0] != "s/manifest.json" {
		t.Errorf("deleted in this order: %q; left: %q", deleted, objects)
	}
}
