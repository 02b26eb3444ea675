package snapshotapi

import (
	"errors"
	"fmt"
	"time"
)

// Progress is the answer to GET /progress.
type Progress struct {
	// TaskID is the ID of the task, since another pod may have taken over the address.
	TaskID string `json:"taskID"`
	// Items and Bytes that are done with, of TotalItems, which grows until all
	// shards' keys are listed.
	Items      int64 `json:"items"`
	TotalItems int64 `json:"totalItems"`
	Bytes      int64 `json:"bytes"`
	// ItemsPerSecond over the last seconds.
	ItemsPerSecond int64 `json:"itemsPerSecond"`
}

// Outcome is how a Job's run ended: its termination message, at most 4096 bytes of
// JSON, of which Message is shortened to fit.
type Outcome struct {
	// Reason is Succeeded or a reason of api/v1alpha1 for a failure.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Final says that another try would end the same.
	Final bool `json:"final,omitempty"`

	Items          int64 `json:"items"`
	TotalItems     int64 `json:"totalItems"`
	Bytes          int64 `json:"bytes"`
	ItemsPerSecond int64 `json:"itemsPerSecond,omitempty"`

	// Snapshot that was written or read; nil when there is none that is whole.
	Snapshot *Snapshot `json:"snapshot,omitempty"`

	// Of a restore: what became of the items, which together are Items.
	Restored int64 `json:"restored,omitempty"`
	Kept     int64 `json:"kept,omitempty"`
	Expired  int64 `json:"expired,omitempty"`
	Refused  int64 `json:"refused,omitempty"`
}

// Snapshot describes a snapshot that is whole.
type Snapshot struct {
	TakenAt       time.Time `json:"takenAt"`
	Shards        int       `json:"shards"`
	Items         int64     `json:"items"`
	Bytes         int64     `json:"bytes"`
	StoredBytes   int64     `json:"storedBytes"`
	FormatVersion int       `json:"formatVersion"`
}

// Failure is an error that has a reason for the status.
type Failure struct {
	// Reason is one of api/v1alpha1.
	Reason string
	// Final says that another try would end the same.
	Final bool
	// Err says it in a sentence, and what to do.
	Err error
}

// Fail returns a Failure that another try may cure.
func Fail(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// FailFinally returns a Failure that another try would not cure.
func FailFinally(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Final: true, Err: fmt.Errorf(format, args...)}
}

// Error returns the sentence.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns what it is made of.
func (f *Failure) Unwrap() error { return f.Err }

// AsFailure returns the Failure that an error is or wraps, or nil.
func AsFailure(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return nil
}
