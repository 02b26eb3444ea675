package task

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

func TestOutcomeFitsIntoATerminationMessage(t *testing.T) {
	full := wire.Outcome{Reason: wire.ReasonStoreFailed, Items: 1 << 60, TotalItems: 1 << 60, Bytes: 1 << 60, ItemsPerSecond: 1 << 60,
		Restored: 1 << 60, Kept: 1 << 60, Expired: 1 << 60, Rejected: 1 << 60,
		Snapshot: &wire.Snapshot{TakenAt: time.Now(), Items: 1 << 60, Bytes: 1 << 60, StoredBytes: 1 << 60}}
	for name, message := range map[string]string{
		"none":                        "",
		"short":                       "the disk is full",
		"long":                        strings.Repeat("a", 10_000),
		"just too long":               strings.Repeat("a", 3600),
		"wide runes":                  strings.Repeat("€", 3000),
		"an odd length of wide runes": "x" + strings.Repeat("𝄞", 3000),
		"escaped in JSON":             strings.Repeat("\"\n\\", 3000),
		"invalid UTF-8":               strings.Repeat("\xff", 3000),
		"control characters":          strings.Repeat("\x01", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			o := full
			o.Message = message
			text := encode(o)
			if len(text) > maxOutcome {
				t.Errorf("%d bytes", len(text))
			}
			var got wire.Outcome
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			cut, isCut := strings.CutSuffix(got.Message, "…")
			switch {
			case !isCut && got.Message != message:
				t.Errorf("message %q", got.Message)
			case isCut && len(text) < maxOutcome-16:
				t.Errorf("more was cut than necessary: %d bytes are left", len(text))
			case isCut && utf8.ValidString(message) && (!utf8.ValidString(cut) || !strings.HasPrefix(message, cut)):
				t.Errorf("not cut between runes: %q", got.Message[len(got.Message)-16:])
			}
			got.Message, o.Message = "", ""
			if got.Items != o.Items || got.Rejected != o.Rejected || got.Snapshot == nil {
				t.Errorf("figures are missing: %s", text)
			}
		})
	}
}

func TestOutcomeIsReportedAsReasonAndExitCode(t *testing.T) {
	figures := wire.Outcome{Items: 7}
	tests := []struct {
		name    string
		outcome wire.Outcome
		code    int
		reason  string
		message string
	}{
		{"success", wire.Outcome{Reason: wire.ReasonSucceeded, Items: 7}, 0, wire.ReasonSucceeded, ""},
		{"a failure worth a retry", failed(figures, fmt.Errorf("saving: %w", wire.Fail(wire.ReasonStoreUnreachable, "no answer"))),
			wire.ExitFailed, wire.ReasonStoreUnreachable, "saving: no answer"},
		{"a final failure", failed(figures, wire.FailFinally(wire.ReasonStoreFull, "it is full")),
			wire.ExitFinal, wire.ReasonStoreFull, "it is full"},
		{"an error without a reason", failed(figures, errors.New("odd")), wire.ExitFailed, wire.ReasonJobFailed, "odd"},
		{"a signal", failed(figures, errors.Join(errStopped, wire.Fail(wire.ReasonShardUnreachable, "canceled"))),
			wire.ExitFailed, wire.ReasonJobFailed, errStopped.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "termination-log")
			if err := os.WriteFile(file, []byte("of an earlier container, and longer than the outcome: "+strings.Repeat("x", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if code := report(test.outcome, file, &out, slog.New(slog.DiscardHandler)); code != test.code {
				t.Errorf("the exit code is %d", code)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(text)+"\n" {
				t.Errorf("printed %s, but the termination log is %s", &out, text)
			}
			var got wire.Outcome
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if got.Reason != test.reason || got.Message != test.message || got.Items != 7 || got.Final != (test.code == wire.ExitFinal) {
				t.Errorf("got %s", text)
			}
		})
	}
}

func TestTerminationLogIsNotCreated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	if code := report(wire.Outcome{Reason: wire.ReasonSucceeded}, file, &bytes.Buffer{}, slog.New(slog.DiscardHandler)); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("it was created")
	}
}

// A retry of a save that found a shard without its items would complete a snapshot of what is left.
func TestFinalFailureOutlivesASignal(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	o := Options{Action: wire.ActionSave, Task: fmt.Sprintf(`{"id":"1","path":"s","store":{"folder":%q}}`, t.TempDir())}
	if got := o.run(ctx, slog.New(slog.DiscardHandler)); !got.Final || got.Reason != wire.ReasonNoShards {
		t.Errorf("got %+v", got)
	}
}
