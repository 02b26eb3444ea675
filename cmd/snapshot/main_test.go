package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestInvalidArgumentsPrintUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"save"}, {"save", "-nosuch"}, {"delete", "-task", ""}, {"inspect"},
		{"inspect", "-path", "x"}, {"inspect", "-store", "gs://bucket"}, {"inspect", "-store", "s3://b?nosuch=1"}, {"inspect", "-store", "/nosuch/directory"}} {
		var out, messages bytes.Buffer
		if code := command(args, &out, &messages); code != exitUsage || out.Len() != 0 || messages.Len() == 0 {
			t.Errorf("%q: exit code %d, output %q, messages %q", args, code, &out, &messages)
		}
	}
}

func TestInvalidTaskIsAFinalFailure(t *testing.T) {
	const valid = `{"id":"1","path":"ns/cache/a-1","store":{"folder":"/nosuch"}}`
	for name, text := range map[string]string{
		"no JSON":                  "{",
		"no ID":                    strings.Replace(valid, `"id":"1",`, "", 1),
		"no path":                  strings.Replace(valid, "ns/cache/a-1", "", 1),
		"the store itself":         strings.Replace(valid, "ns/cache/a-1", ".", 1),
		"a path outside the store": strings.Replace(valid, "ns/cache/a-1", "ns/../../etc", 1),
		"an absolute path":         strings.Replace(valid, "ns/cache/a-1", "/etc", 1),
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			code := command([]string{"delete", "-listen", "", "-termination-log", "", "-task", text}, &out, io.Discard)
			var o wire.Outcome
			if err := json.Unmarshal(out.Bytes(), &o); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			if code != wire.ExitFinal || !o.Final || o.Reason != wire.ReasonJobFailed || o.Message == "" {
				t.Errorf("exit code %d, %s", code, &out)
			}
		})
	}
}
