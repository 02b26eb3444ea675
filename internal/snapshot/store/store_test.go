package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/internal/memcached/fake"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func open(t *testing.T, directory string) *blob.Bucket {
	t.Helper()
	b, err := Open(t.Context(), wire.Store{Folder: directory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// files returns the files below a directory, by their paths in it.
func files(t *testing.T, directory string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(directory, path)
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestFolderIsCreatedAndContainsOnlyTheObject(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "a", "b")
	b := open(t, directory)
	for _, content := range []string{"an older one", "complete"} {
		if err := Put(t.Context(), b, "ns/cache/1/manifest.json", []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.ReadAll(t.Context(), "ns/cache/1/manifest.json"); err != nil || string(got) != "complete" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := files(t, directory); got != "ns/cache/1/manifest.json" {
		t.Errorf("the directory contains %s", got)
	}
}

func TestAbortedWriteLeavesNothing(t *testing.T) {
	directory := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Put(ctx, open(t, directory), "a/b", []byte("half")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := files(t, directory); got != "" {
		t.Errorf("the directory contains %s", got)
	}
}

func TestPathsCannotLeaveTheFolder(t *testing.T) {
	outside := t.TempDir()
	directory := filepath.Join(outside, "store")
	b := open(t, directory)
	for _, key := range []string{"../escaped", "a/../../escaped", "/../escaped", "..", "a/../.."} {
		_ = Put(t.Context(), b, key, []byte("x"))
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("the store has siblings: %v, %v", entries, err)
	}
	for _, bad := range []string{"store", "/store/../etc", "./store", "/a/./b"} {
		_, err := Open(t.Context(), wire.Store{Folder: bad})
		if f := wire.AsFailure(err); f == nil || f.Reason != wire.ReasonStoreNotFound || !f.Final {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestPruneRemovesEmptyFolders(t *testing.T) {
	directory := t.TempDir()
	s := wire.Store{Folder: directory}
	for _, dir := range []string{"ns/cache/old/shard-0/a", "ns/cache/old/shard-1", "ns/cache/new"} {
		if err := os.MkdirAll(filepath.Join(directory, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Prune(s, "ns/cache/old"); err != nil {
		t.Fatal(err)
	}
	if exists(t, directory, "ns/cache/old") || !exists(t, directory, "ns/cache/new") {
		t.Error("the empty directory exists, or another one doesn't")
	}
	if err := errors.Join(Prune(s, "ns/cache/new"), Prune(s, "never/was")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Prune(s, "."), Prune(s, "../"+filepath.Base(directory))); err != nil || !exists(t, directory, "file") {
		t.Errorf("paths that are not of a snapshot: %v", err)
	}
	if exists(t, directory, "ns") || !exists(t, directory, ".") {
		t.Error("an empty directory exists, or the store doesn't")
	}
}

func exists(t *testing.T, elements ...string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(elements...))
	return err == nil
}

func TestInvalidCredentialsAndCertificatesOfS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket := func(ca string) wire.Store {
		// a port without a server
		return wire.Store{S3: &wire.S3{Bucket: "b", Endpoint: "https://127.0.0.1:1", CAFile: ca}}
	}
	wantFailure(t, openError(t, bucket("")), wire.ReasonStoreAccessDenied, true, "AWS_ACCESS_KEY_ID", "credentialsSecretName")
	t.Setenv("AWS_ACCESS_KEY_ID", "id\n")
	wantFailure(t, openError(t, bucket(filepath.Join(t.TempDir(), "none"))), wire.ReasonStoreCertificateInvalid, true, "caSecretName", "ca.crt")
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, openError(t, bucket(empty)), wire.ReasonStoreCertificateInvalid, true, "PEM")
}

func openError(t *testing.T, s wire.Store) error {
	t.Helper()
	b, err := Open(t.Context(), s)
	if err == nil {
		_ = b.Close()
	}
	return err
}

func wantFailure(t *testing.T, err error, reason string, final bool, words ...string) {
	t.Helper()
	f := wire.AsFailure(err)
	if f == nil || f.Reason != reason || f.Final != final {
		t.Errorf("got %#v (%v), want %s, final %v", f, err, reason, final)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error lacks %q: %s", word, err)
		}
	}
}

func TestTaskMustSpecifyOneStore(t *testing.T) {
	for _, s := range []wire.Store{{}, {Folder: "/x", S3: &wire.S3{}}} {
		wantFailure(t, openError(t, s), wire.ReasonStoreFailed, true)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	api := func(code, message string) error {
		return fmt.Errorf("operation error S3: %w", &smithy.GenericAPIError{Code: code, Message: message})
	}
	file := func(err error) error { return &fs.PathError{Op: "write", Path: "/store/x", Err: err} }
	tests := []struct {
		name   string
		err    error
		reason string
		final  bool
	}{
		{"a full disk", file(syscall.ENOSPC), wire.ReasonStoreFull, true},
		{"an exhausted quota", file(syscall.EDQUOT), wire.ReasonStoreFull, true},
		{"a quota of a bucket", api("QuotaExceeded", ""), wire.ReasonStoreFull, true},
		{"a full disk of a server", api("InternalError", "write /x: no space left on device"), wire.ReasonStoreFull, true},
		{"a read-only volume", file(syscall.EROFS), wire.ReasonStoreReadOnly, true},
		{"a volume of another user", file(syscall.EACCES), wire.ReasonStoreAccessDenied, true},
		{"a file for a directory", file(syscall.ENOTDIR), wire.ReasonStoreNotFound, true},
		{"a failing volume", file(syscall.EIO), wire.ReasonStoreFailed, false},
		{"a wrong secret", api("SignatureDoesNotMatch", ""), wire.ReasonStoreAccessDenied, true},
		{"expired temporary credentials", api("ExpiredToken", ""), wire.ReasonStoreAccessDenied, true},
		{"different clocks", api("RequestTimeTooSkewed", ""), wire.ReasonStoreAccessDenied, true},
		{"another region", api("PermanentRedirect", ""), wire.ReasonStoreNotFound, true},
		{"no bucket", api("NoSuchBucket", ""), wire.ReasonStoreNotFound, true},
		{"an error of the server's", api("InternalError", "we are sorry"), wire.ReasonStoreFailed, false},
		{"an unknown host", &net.DNSError{Err: "no such host", Name: "s3.invalid", IsNotFound: true}, wire.ReasonStoreUnreachable, false},
		{"a server that does not run", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, wire.ReasonStoreUnreachable, false},
		{"a truncated answer", io.ErrUnexpectedEOF, wire.ReasonStoreUnreachable, false},
		{"a server that takes too long", context.DeadlineExceeded, wire.ReasonStoreUnreachable, false},
		{"a canceled run", context.Canceled, wire.ReasonJobFailed, false},
		{"something else", errors.New("something else"), wire.ReasonStoreFailed, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := Failure(test.err, "writing a chunk")
			wantFailure(t, err, test.reason, test.final, "writing a chunk: ")
			if !errors.Is(err, test.err) {
				t.Errorf("it doesn't wrap the error: %v", err)
			}
			if again := Failure(fmt.Errorf("saving: %w", err), "doing more"); again.Error() != "saving: "+err.Error() {
				t.Errorf("a failure was changed: %v", again)
			}
		})
	}
	if Failure(nil, "") != nil {
		t.Error("nil became a failure")
	}
}

func TestUnreachableServerIsReportedWithItsCause(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		dial  dial
		dials int
		takes time.Duration
		cause string
	}{
		"refuses connections": {func(context.Context, string, string) (net.Conn, error) { return nil, refused },
			attempts, 0, "connection refused"},
		"drops packets": {func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
		}, attempts, attempts * dialTimeout, "deadline exceeded"},
		"never answers": {func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := fake.Pipe()
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			return ours, nil
		}, 2, openTimeout, errNoAnswer.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, began := 0, time.Now()
				_, err := openS3(t.Context(), wire.S3{Bucket: "snapshots", Endpoint: "http://store"}, func(ctx context.Context, network, address string) (net.Conn, error) {
					dials++
					return c.dial(ctx, network, address)
				})
				wantFailure(t, err, wire.ReasonStoreUnreachable, false, c.cause, "doesn't answer")
				if took := time.Since(began); dials != c.dials || took < c.takes || took > c.takes+(attempts-1)*maxBackoff { //nolint:forbidigo // the fake time of a bubble
					t.Errorf("it gives up after %s and %d connections, want %s and %d", took, dials, c.takes, c.dials)
				}
			})
		})
	}
}
