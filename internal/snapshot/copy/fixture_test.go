package copy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/format"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// setup is a store, and a network with shards.
type setup struct {
	t       *testing.T
	network *fake.Network
	bucket  *blob.Bucket
	options Options
	servers int
}

// pass lets the fake time of a bubble pass.
func pass(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // it doesn't wait

// newSetup must be called in a bubble of testing/synctest.
func newSetup(t *testing.T) *setup {
	t.Helper()
	s := &setup{t: t, network: &fake.Network{}, bucket: memblob.OpenBucket(nil)}
	t.Cleanup(s.network.Close)
	s.options = Options{
		SpoolDir: t.TempDir(), UsersDir: t.TempDir(), Progress: &Progress{}, DialContext: s.network.DialContext, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	return s
}

// shard is a server of the setup.
type shard struct {
	*fake.Server
	network *fake.Network
	address string
}

func (s *setup) shard() *shard {
	s.servers++
	server := &shard{fake.New(), s.network, fmt.Sprintf("10.0.1.%d:11211", s.servers)}
	server.ItemSizeMax = 8 << 20
	server.start()
	return server
}

func (s *setup) shards(n int) (shards []*shard) {
	for range n {
		shards = append(shards, s.shard())
	}
	return shards
}

func (s *shard) start() { s.Serve(s.network, s.address) }

// restart starts a server without items at the address.
func (s *shard) restart() {
	s.Stop()
	s.Clear()
	s.start()
}

func (s *shard) put(items map[string]fake.Item) {
	for key, item := range items {
		s.Set(key, item)
	}
}

// at does something before the nth request that starts with a text; with nth 0, before each of them.
func (s *shard) at(request string, nth int, do func()) {
	var n atomic.Int64 // connections may make requests at once
	before := s.Before
	s.Before = func(got string) string {
		if strings.HasPrefix(got, request) {
			if count := int(n.Add(1)); nth == 0 || count == nth {
				do()
			}
		}
		if before != nil {
			return before(got)
		}
		return ""
	}
}

func taskOf(shards ...*shard) wire.Task {
	task := wire.Task{ID: "backup-1", Path: "ns/cache/nightly-1", Memcached: wire.Memcached{Namespace: "ns", Name: "cache", UID: "7"}, Load: &wire.Load{}}
	for _, s := range shards {
		task.Servers = append(task.Servers, s.address)
	}
	return task
}

func (s *setup) save(task wire.Task) wire.Outcome {
	s.t.Helper()
	s.options.Progress = &Progress{}
	outcome, err := Save(s.t.Context(), s.bucket, task, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	return outcome
}

func (s *setup) load(task wire.Task) wire.Outcome {
	s.t.Helper()
	s.options.Progress = &Progress{}
	outcome, err := Load(s.t.Context(), s.bucket, task, s.options)
	if err != nil {
		s.t.Fatal(err)
	}
	return outcome
}

// objects are the names of all in the store.
func (s *setup) objects() (names []string) {
	list := s.bucket.List(nil)
	for {
		object, err := list.Next(context.Background())
		if err != nil {
			return names
		}
		names = append(names, object.Key)
	}
}

// slowStore is a store that takes a while to delete a chunk.
type slowStore struct {
	driver.Bucket
	bucket *blob.Bucket
	took   time.Duration
	// begins is called before each deletion of a chunk.
	begins func()
}

func (s slowStore) Delete(ctx context.Context, key string, _ *driver.DeleteOptions) error {
	if strings.HasSuffix(key, ".zst") {
		s.begins()
		select {
		case <-time.After(s.took):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.bucket.Delete(ctx, key)
}

func (s slowStore) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	page := &driver.ListPage{}
	objects, listed := s.bucket.List(&blob.ListOptions{Prefix: o.Prefix}).All(ctx)
	for object := range objects {
		page.Objects = append(page.Objects, &driver.ListObject{Key: object.Key, Size: object.Size})
	}
	return page, listed()
}

func (s slowStore) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	r, err := s.bucket.NewRangeReader(ctx, key, offset, length, nil)
	return slowStoreReader{r}, err
}

type slowStoreReader struct{ *blob.Reader }

func (r slowStoreReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.Size()}
}

func (s slowStore) NewTypedWriter(ctx context.Context, key, contentType string, o *driver.WriterOptions) (driver.Writer, error) {
	return s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: contentType, BeforeWrite: o.BeforeWrite})
}

func (slowStore) ErrorCode(err error) gcerrors.ErrorCode { return gcerrors.Code(err) }
func (slowStore) ErrorAs(error, any) bool                { return false }

// fullStore is a store that is full when it gets a manifest, which it writes nevertheless, or not.
type fullStore struct {
	slowStore
	written bool
}

func (s fullStore) NewTypedWriter(ctx context.Context, key, contentType string, o *driver.WriterOptions) (driver.Writer, error) {
	if !strings.HasSuffix(key, format.ManifestName) {
		return s.slowStore.NewTypedWriter(ctx, key, contentType, o)
	}
	ctx, cancel := context.WithCancel(ctx)
	if s.written {
		cancel = func() {}
	}
	w, err := s.slowStore.NewTypedWriter(ctx, key, contentType, o)
	return fullWriter{w, cancel}, err
}

type fullWriter struct {
	driver.Writer
	cancel func()
}

func (w fullWriter) Close() error {
	w.cancel()
	_ = w.Writer.Close() // written, unless it was canceled
	return syscall.ENOSPC
}

// limitedConn is a connection that is lost after so many bytes of either direction; 0 is no limit.
type limitedConn struct {
	net.Conn
	reads, writes int64
	cuts          *int
}

// limited limits the first connections to an address.
func limited(dial protocol.DialContext, address string, limit limitedConn, cuts *int) protocol.DialContext {
	return func(ctx context.Context, network, at string) (net.Conn, error) {
		conn, err := dial(ctx, network, at)
		if err != nil || at != address || *cuts == 0 {
			return conn, err
		}
		return &limitedConn{conn, limit.reads, limit.writes, cuts}, nil
	}
}

func (c *limitedConn) Read(p []byte) (int, error) { return c.pass(c.Conn.Read, p, &c.reads) }

func (c *limitedConn) Write(p []byte) (int, error) { return c.pass(c.Conn.Write, p, &c.writes) }

func (c *limitedConn) pass(do func([]byte) (int, error), p []byte, left *int64) (int, error) {
	switch {
	case *left == 0:
		return do(p)
	case *left < 0:
		return 0, net.ErrClosed
	}
	n, err := do(p[:min(int64(len(p)), *left)])
	if *left -= int64(n); *left == 0 && err == nil {
		*left = -1
		*c.cuts--
		_ = c.Close()
	}
	if err == nil && n < len(p) && *left < 0 {
		err = net.ErrClosed
	}
	return n, err
}

func wantFailure(t *testing.T, err error, reason string, final bool, text string) {
	t.Helper()
	if f := wire.AsFailure(err); f == nil || f.Reason != reason || f.Final != final || !strings.Contains(f.Error(), text) {
		t.Errorf("got %+v, %v; want the reason %s, final %t, and %q", f, err, reason, final, text)
	}
}

// wantItems compares all items, and to a second, which is what memcached counts, when they expire.
func wantItems(t *testing.T, got *shard, want map[string]fake.Item) {
	t.Helper()
	have, wrong := got.Items(), 0
	for key, item := range want {
		if expires := have[key].Expires; expires != 0 && expires == item.Expires-1 {
			item.Expires--
		}
		if have[key] != item {
			if wrong++; wrong < 5 {
				t.Errorf("%.40q: %.60q, want %.60q", key, fmt.Sprint(have[key]), fmt.Sprint(item))
			}
		}
		delete(have, key)
	}
	for key := range have {
		t.Errorf("%.40q is there", key)
	}
}

// someItems are items of every kind, and n small ones.
func someItems(name string, n int) map[string]fake.Item {
	now := time.Now().Unix()
	items := map[string]fake.Item{
		name + "-empty":                {},
		name + "-line-ends":            {Value: "\r\nEND\r\nVA 1\r\n", Flags: 5, Expires: now + 1500},
		name + " with spaces \t in it": {Value: "binary", Flags: 1<<32 - 1, Expires: now + 1700, Binary: true},
		name + "-schlüssel-100%25":     {Value: "ü", Expires: now + 40*86400},
		name + "-half-a-megabyte":      {Value: strings.Repeat("0123456789abcdef", 32<<10), Flags: 3},
	}
	for i := range n {
		item := fake.Item{Value: fmt.Sprintf("value %d", i), Flags: uint64(i % 3)}
		if i%2 == 0 {
			item.Expires = now + 1000 + int64(i)
		}
		items[fmt.Sprintf("%s-%d", name, i)] = item
	}
	return items
}

// largeItem is in several chunks.
func largeItem() fake.Item {
	return fake.Item{Value: strings.Repeat("0123456789abcdef", 300_000), Flags: 9}
}

func merged(all ...map[string]fake.Item) map[string]fake.Item {
	sum := map[string]fake.Item{}
	for _, items := range all {
		maps.Copy(sum, items)
	}
	return sum
}

// acceptsSecret is the LogIn of a server with one user.
func acceptsSecret(credentials string) bool { return credentials == "user secret" }
