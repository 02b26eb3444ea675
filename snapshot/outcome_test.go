package main

import (
	"bytes"
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

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

func TestAnOutcomeFitsIntoWhatTheKubeletKeeps(t *testing.T) {
	full := snapshotapi.Outcome{Reason: v1alpha1.ReasonStoreFailed, Items: 1 << 60, TotalItems: 1 << 60, Bytes: 1 << 60, ItemsPerSecond: 1 << 60,
		Restored: 1 << 60, Kept: 1 << 60, Expired: 1 << 60, Refused: 1 << 60,
		Snapshot: &snapshotapi.Snapshot{TakenAt: time.Now(), Items: 1 << 60, Bytes: 1 << 60, StoredBytes: 1 << 60}}
	for name, message := range map[string]string{
		"none":               "",
		"short":              "the disk is full",
		"long":               strings.Repeat("a", 10_000),
		"just too long":      strings.Repeat("a", 3600),
		"of wide runes":      strings.Repeat("€", 3000),
		"odd and wide":       "x" + strings.Repeat("𝄞", 3000),
		"that is quoted":     strings.Repeat("\"\n\\", 3000),
		"that is no text":    strings.Repeat("\xff", 3000),
		"with control runes": strings.Repeat("\x01", 3000),
	} {
		t.Run(name, func(t *testing.T) {
			o := full
			o.Message = message
			text := encode(o)
			if len(text) > outcomeBytes {
				t.Errorf("it has %d bytes", len(text))
			}
			var got snapshotapi.Outcome
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			cut, isCut := strings.CutSuffix(got.Message, "…")
			switch {
			case !isCut && got.Message != message:
				t.Errorf("it says %q", got.Message)
			case isCut && len(text) < outcomeBytes-16:
				t.Errorf("more was cut than had to be: %d bytes are left", len(text))
			case isCut && utf8.ValidString(message) && (!utf8.ValidString(cut) || !strings.HasPrefix(message, cut)):
				t.Errorf("it is not cut between runes: %q", got.Message[len(got.Message)-16:])
			}
			got.Message, o.Message = "", ""
			if got.Items != o.Items || got.Refused != o.Refused || got.Snapshot == nil {
				t.Errorf("it lost figures: %s", text)
			}
		})
	}
}

func TestHowARunEndsIsToldAsReasonAndAsExitCode(t *testing.T) {
	figures := snapshotapi.Outcome{Items: 7}
	tests := []struct {
		name    string
		outcome snapshotapi.Outcome
		code    int
		reason  string
		message string
	}{
		{"well", snapshotapi.Outcome{Reason: succeeded, Items: 7}, 0, v1alpha1.ReasonSucceeded, ""},
		{"a failure that may pass", failed(figures, fmt.Errorf("saving: %w", snapshotapi.Fail(v1alpha1.ReasonStoreUnreachable, "nobody answers"))),
			snapshotapi.ExitFailed, v1alpha1.ReasonStoreUnreachable, "saving: nobody answers"},
		{"a failure that stays", failed(figures, snapshotapi.FailFinally(v1alpha1.ReasonStoreFull, "it is full")),
			snapshotapi.ExitFinal, v1alpha1.ReasonStoreFull, "it is full"},
		{"an error without a reason", failed(figures, errors.New("odd")), snapshotapi.ExitFailed, v1alpha1.ReasonJobFailed, "odd"},
		{"a signal", failed(figures, errors.Join(errStopped, snapshotapi.FailFinally(v1alpha1.ReasonShardLostItems, "lost"))),
			snapshotapi.ExitFailed, v1alpha1.ReasonJobFailed, errStopped.Error()},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "termination-log")
			if err := os.WriteFile(file, []byte("of an earlier container, and longer than what comes: "+strings.Repeat("x", 500)), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if code := conclude(test.outcome, file, &out, slog.New(slog.DiscardHandler)); code != test.code {
				t.Errorf("the exit code is %d", code)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out.String() != string(text)+"\n" {
				t.Errorf("a person reads %s, the operator %s", &out, text)
			}
			var got snapshotapi.Outcome
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if got.Reason != test.reason || got.Message != test.message || got.Items != 7 || got.Final != (test.code == snapshotapi.ExitFinal) {
				t.Errorf("it tells %s", text)
			}
		})
	}
}

func TestNoTerminationLogIsMadeWhereThereIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "termination-log")
	if code := conclude(snapshotapi.Outcome{Reason: succeeded}, file, &bytes.Buffer{}, slog.New(slog.DiscardHandler)); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("there is one")
	}
}
