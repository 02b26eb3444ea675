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

	"github.com/aws/smithy-go"
	"gocloud.dev/blob"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func open(t *testing.T, folder string) *blob.Bucket {
	t.Helper()
	b, err := Open(t.Context(), snapshotapi.Store{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// files returns the files below a folder, by their paths in it.
func files(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(folder, path)
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestAFolderIsMadeAndHoldsWhatWasWrittenAndNothingElse(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	b := open(t, folder)
	w, err := Create(t.Context(), b, "ns/cache/1/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "whole"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadAll(t.Context(), "ns/cache/1/manifest.json"); !Missing(err) {
		t.Errorf("before it is closed there is an object, or another error than that it is missing: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	w.Abort()
	if got, err := b.ReadAll(t.Context(), "ns/cache/1/manifest.json"); err != nil || string(got) != "whole" {
		t.Errorf("it reads %q, %v", got, err)
	}
	if got := files(t, folder); got != "ns/cache/1/manifest.json" {
		t.Errorf("the folder holds %s", got)
	}
}

func TestAWriteThatIsGivenUpLeavesNothing(t *testing.T) {
	for name, giveUp := range map[string]func(w *Writer, cancel func()){
		"aborted":          func(w *Writer, _ func()) { w.Abort() },
		"context ended":    func(w *Writer, cancel func()) { cancel(); _ = w.Close() },
		"write had failed": func(w *Writer, _ func()) { w.err = syscall.ENOSPC; _ = w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context()) // of its own: what one case ends is not ended in another
			defer cancel()
			w, err := Create(ctx, open(t, folder), "a/b")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, "half"); err != nil {
				t.Fatal(err)
			}
			giveUp(w, cancel)
			if err := w.Close(); err == nil {
				t.Error("Close says that it was written")
			}
			if got := files(t, folder); got != "" {
				t.Errorf("the folder holds %s", got)
			}
		})
	}
}

func TestNoPathLeadsOutOfTheFolder(t *testing.T) {
	outside := t.TempDir()
	folder := filepath.Join(outside, "store")
	b := open(t, folder)
	for _, key := range []string{"../escaped", "a/../../escaped", "/../escaped", "..", "a/../.."} {
		if w, err := Create(t.Context(), b, key); err == nil {
			_, _ = io.WriteString(w, "x")
			_ = w.Close()
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the store there are %v, %v", entries, err)
	}
	for _, bad := range []string{"store", "/store/../etc", "./store", "/a/./b"} {
		_, err := Open(t.Context(), snapshotapi.Store{Folder: bad})
		if f := snapshotapi.AsFailure(err); f == nil || f.Reason != v1alpha1.ReasonStoreNotFound || !f.Final {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestFoldersThatADeletedSnapshotLeftEmptyGo(t *testing.T) {
	folder := t.TempDir()
	s := snapshotapi.Store{Folder: folder}
	for _, dir := range []string{"ns/cache/old/shard-0/a", "ns/cache/old/shard-1", "ns/cache/new"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Prune(s, "ns/cache/old"); err != nil {
		t.Fatal(err)
	}
	if exists(t, folder, "ns/cache/old") || !exists(t, folder, "ns/cache/new") {
		t.Error("the folder of the one is there, or that of the other is not")
	}
	if err := errors.Join(Prune(s, "ns/cache/new"), Prune(s, "never/was")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Prune(s, "."), Prune(s, "../"+filepath.Base(folder))); err != nil || !exists(t, folder, "file") {
		t.Errorf("what is no path of a snapshot: %v", err)
	}
	if exists(t, folder, "ns") || !exists(t, folder, ".") {
		t.Error("an empty folder stayed, or the store went")
	}
}

func exists(t *testing.T, elements ...string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(elements...))
	return err == nil
}

func TestS3NeedsCredentialsAndCertificatesThatAreGood(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket := func(ca string) snapshotapi.Store {
		// a port that nobody has, were it asked
		return snapshotapi.Store{S3: &snapshotapi.S3{Bucket: "b", Endpoint: "https://127.0.0.1:1", CAFile: ca}}
	}
	wantFailure(t, openError(t, bucket("")), v1alpha1.ReasonStoreAccessDenied, true, "AWS_ACCESS_KEY_ID", "credentialsSecret")
	t.Setenv("AWS_ACCESS_KEY_ID", "id\n")
	wantFailure(t, openError(t, bucket(filepath.Join(t.TempDir(), "none"))), v1alpha1.ReasonStoreCertificate, true, "caSecret", "ca.crt")
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, openError(t, bucket(empty)), v1alpha1.ReasonStoreCertificate, true, "PEM")
}

func openError(t *testing.T, s snapshotapi.Store) error {
	t.Helper()
	b, err := Open(t.Context(), s)
	if err == nil {
		_ = b.Close()
	}
	return err
}

func wantFailure(t *testing.T, err error, reason string, final bool, words ...string) {
	t.Helper()
	f := snapshotapi.AsFailure(err)
	if f == nil || f.Reason != reason || f.Final != final {
		t.Errorf("got %#v (%v), want %s, final %v", f, err, reason, final)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("it does not say %q: %s", word, err)
		}
	}
}

func TestATaskNamesOneStore(t *testing.T) {
	for _, s := range []snapshotapi.Store{{}, {Folder: "/x", S3: &snapshotapi.S3{}}} {
		wantFailure(t, openError(t, s), v1alpha1.ReasonStoreFailed, true)
	}
}

func TestWhatAnErrorOfAStoreMeans(t *testing.T) {
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
		{"a disk that is full", file(syscall.ENOSPC), v1alpha1.ReasonStoreFull, true},
		{"a quota that is used up", file(syscall.EDQUOT), v1alpha1.ReasonStoreFull, true},
		{"a quota of a bucket", api("QuotaExceeded", ""), v1alpha1.ReasonStoreFull, true},
		{"a server's disk that is full", api("InternalError", "write /x: no space left on device"), v1alpha1.ReasonStoreFull, true},
		{"a volume that is read-only", file(syscall.EROFS), v1alpha1.ReasonStoreReadOnly, true},
		{"a volume of another user", file(syscall.EACCES), v1alpha1.ReasonStoreAccessDenied, true},
		{"a file for a folder", file(syscall.ENOTDIR), v1alpha1.ReasonStoreNotFound, true},
		{"a volume that fails", file(syscall.EIO), v1alpha1.ReasonStoreFailed, false},
		{"a wrong secret", api("SignatureDoesNotMatch", ""), v1alpha1.ReasonStoreAccessDenied, true},
		{"temporary credentials that are old", api("ExpiredToken", ""), v1alpha1.ReasonStoreAccessDenied, true},
		{"clocks that differ", api("RequestTimeTooSkewed", ""), v1alpha1.ReasonStoreAccessDenied, true},
		{"another region", api("PermanentRedirect", ""), v1alpha1.ReasonStoreNotFound, true},
		{"no bucket", api("NoSuchBucket", ""), v1alpha1.ReasonStoreNotFound, true},
		{"an error of the server's", api("InternalError", "we are sorry"), v1alpha1.ReasonStoreFailed, false},
		{"a name that nobody has", &net.DNSError{Err: "no such host", Name: "s3.invalid", IsNotFound: true}, v1alpha1.ReasonStoreUnreachable, false},
		{"a server that does not run", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, v1alpha1.ReasonStoreUnreachable, false},
		{"an answer that broke off", io.ErrUnexpectedEOF, v1alpha1.ReasonStoreUnreachable, false},
		{"a server that takes too long", context.DeadlineExceeded, v1alpha1.ReasonStoreUnreachable, false},
		{"a run that was stopped", context.Canceled, v1alpha1.ReasonJobFailed, false},
		{"something else", errors.New("something else"), v1alpha1.ReasonStoreFailed, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := Failure(test.err, "writing a chunk")
			wantFailure(t, err, test.reason, test.final, "writing a chunk: ")
			if !errors.Is(err, test.err) {
				t.Errorf("it does not wrap what it is made of: %v", err)
			}
			if again := Failure(fmt.Errorf("saving: %w", err), "doing more"); again.Error() != "saving: "+err.Error() {
				t.Errorf("a failure became another: %v", again)
			}
		})
	}
	if Failure(nil, "") != nil {
		t.Error("nothing is a failure")
	}
}

func TestAServerWithoutAnAnswerIsToldByWhatKeptItFromOne(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	_, err := Open(t.Context(), snapshotapi.Store{S3: &snapshotapi.S3{Bucket: "snapshots", Endpoint: "http://127.0.0.1:1"}})
	if f := snapshotapi.AsFailure(err); f == nil || f.Reason != v1alpha1.ReasonStoreUnreachable || !strings.Contains(f.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}
