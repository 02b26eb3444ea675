package format

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

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

// deletions is a bucket that only lists objects, in two pages, and deletes them.
type deletions struct {
	driver.Bucket
	objects []string
	delete  func(key string) error
	// lists is called before the second page is listed.
	lists func()
}

func (d deletions) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	page, half := &driver.ListPage{NextPageToken: []byte("second")}, len(d.objects)/2
	listed := d.objects[:half]
	if len(o.PageToken) > 0 {
		page.NextPageToken, listed = nil, d.objects[half:]
		d.lists()
	}
	for _, key := range listed {
		page.Objects = append(page.Objects, &driver.ListObject{Key: key})
	}
	return page, nil
}

func (d deletions) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	return d.delete(key)
}

func (deletions) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.Unknown }
func (deletions) ErrorAs(error, any) bool            { return false }

// One after the other, the chunks of a large cache take longer than the Job may.
func TestChunksAreDeletedAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, deleted atomic.Int64
		enough := make(chan struct{})
		bucket := blob.NewBucket(deletions{delete: func(string) error {
			if begun.Add(1) == maxDeletions {
				close(enough)
			}
			<-enough
			<-time.After(time.Second)
			deleted.Add(1)
			return nil
		}, objects: chunksOf(2 * maxPage), lists: func() { // a list of a volume fails if a file disappears
			if deleted.Load() != maxPage {
				t.Errorf("the second page is listed after %d deletions of the first", deleted.Load())
			}
		}})
		if err := DeleteAll(t.Context(), bucket, "s"); err != nil || deleted.Load() != 2*maxPage {
			t.Errorf("%d chunks were deleted, %v", deleted.Load(), err)
		}
	})
}

func TestDeletionFailsWithTheErrorOfAnObject(t *testing.T) {
	objects := chunksOf(2 * maxPage)
	bucket := blob.NewBucket(deletions{objects: objects, delete: func(key string) error {
		if key == objects[25] {
			return syscall.EROFS
		}
		return nil
	}, lists: func() { t.Error("the deletion goes on") }})
	if f := wire.AsFailure(DeleteAll(t.Context(), bucket, "s")); f == nil || f.Reason != wire.ReasonStoreReadOnly {
		t.Errorf("got %v", f)
	}
}

func chunksOf(n int) (objects []string) {
	for i := range n {
		objects = append(objects, fmt.Sprintf("s/a1b2/000000/%09d.zst", i))
	}
	return objects
}
