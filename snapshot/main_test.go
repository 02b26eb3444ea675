package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func TestACallThatSaysNothingToDoIsToldHow(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"save"}, {"save", "-nosuch"}, {"delete", "-task", ""}, {"inspect"},
		{"inspect", "-path", "x"}, {"inspect", "-store", "gs://bucket"}, {"inspect", "-store", "s3://b?nosuch=1"}, {"inspect", "-store", "/nosuch/folder"}} {
		var out, messages bytes.Buffer
		if code := command(args, &out, &messages); code != exitUsage || out.Len() != 0 || messages.Len() == 0 {
			t.Errorf("%q: exit code %d, output %q, messages %q", args, code, &out, &messages)
		}
	}
}

func TestATaskThatCannotBeDoneIsFinal(t *testing.T) {
	const whole = `{"id":"1","path":"ns/cache/a-1","store":{"folder":"/nosuch"}}`
	for name, text := range map[string]string{
		"no JSON":        "{",
		"no ID":          strings.Replace(whole, `"id":"1",`, "", 1),
		"no path":        strings.Replace(whole, "ns/cache/a-1", "", 1),
		"the store":      strings.Replace(whole, "ns/cache/a-1", ".", 1),
		"a path outside": strings.Replace(whole, "ns/cache/a-1", "ns/../../etc", 1),
		"a path of root": strings.Replace(whole, "ns/cache/a-1", "/etc", 1),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := command([]string{"delete", "-listen", "", "-termination-log", "", "-task", text}, &out, io.Discard)
			var o snapshotapi.Outcome
			if err := json.Unmarshal(out.Bytes(), &o); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if code != snapshotapi.ExitFinal || !o.Final || o.Reason != v1alpha1.ReasonJobFailed || o.Message == "" {
				t.Errorf("exit code %d, %s", code, &out)
			}
		})
	}
}

func TestATaskIsReadFromAFileToo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "task.json")
	text, err := json.Marshal(snapshotapi.Task{ID: "1", Path: "a/b", Store: snapshotapi.Store{Folder: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := command([]string{"delete", "-listen", "", "-termination-log", "", "-task-file", file}, &out, io.Discard); code != 0 {
		t.Errorf("the exit code is %d: %s", code, &out)
	}
}

func TestAStoreIsNamedByAFolderOrByAURL(t *testing.T) {
	dir := t.TempDir()
	for place, want := range map[string]snapshotapi.Store{
		dir: {Folder: dir},
		"s3://backups/a/b/?endpoint=https://s3.example:9000&region=eu-1&ca=/ca.crt": {S3: &snapshotapi.S3{
			Bucket: "backups", Prefix: "a/b", Endpoint: "https://s3.example:9000", Region: "eu-1", CAFile: "/ca.crt"}},
		"s3://backups": {S3: &snapshotapi.S3{Bucket: "backups"}},
	} {
		got, err := parseStore(place)
		if err != nil {
			t.Errorf("%s: %v", place, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", place, diff)
		}
	}
}

func TestProgressIsToldWhileItRunsAndNotAfter(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	want := snapshotapi.Progress{TaskID: "of-this", Items: 3, TotalItems: 5, Bytes: 700, ItemsPerSecond: 2}
	end := serve(listener, func() snapshotapi.Progress { return want })
	url := "http://" + listener.Addr().String()
	response, err := http.Get(url + "/progress")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got snapshotapi.Progress
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || got != want {
		t.Errorf("it tells %+v, %v", got, err)
	}
	health, err := http.Get(url + "/healthz")
	if err != nil || health.StatusCode != http.StatusOK {
		t.Errorf("its health: %v, %v", health, err)
	}
	if err == nil {
		_ = health.Body.Close()
	}
	end()
	if response, err := http.Get(url + "/healthz"); err == nil {
		_ = response.Body.Close()
		t.Error("it answers after its end")
	}
}
