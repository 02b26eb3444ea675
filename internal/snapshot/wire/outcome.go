package wire

import (
	"errors"
	"fmt"
	"time"
)

// Progress is the answer to GET /progress.
type Progress struct {
	// TaskID is the ID of the task: another pod may have got the address.
	TaskID string `json:"taskID"`
	// Items and Bytes that are done. TotalItems grows until the keys of all shards are
	// listed.
	Items      int64 `json:"items"`
	TotalItems int64 `json:"totalItems"`
	Bytes      int64 `json:"bytes"`
	// ItemsPerSecond over the last seconds.
	ItemsPerSecond int64 `json:"itemsPerSecond"`
}

// Outcome is the result of a Job: its termination message, at most 4096 bytes of JSON,
// for which Message is shortened.
type Outcome struct {
	// Reason is one of the reasons of this package.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Final means that a retry would have the same result.
	Final bool `json:"final,omitempty"`

	Items          int64 `json:"items"`
	TotalItems     int64 `json:"totalItems"`
	Bytes          int64 `json:"bytes"`
	ItemsPerSecond int64 `json:"itemsPerSecond,omitempty"`

	// Snapshot that was written or read; nil if none is complete.
	Snapshot *Snapshot `json:"snapshot,omitempty"`

	// Results of a restore, which add up to Items.
	Restored int64 `json:"restored,omitempty"`
	Kept     int64 `json:"kept,omitempty"`
	Expired  int64 `json:"expired,omitempty"`
	Rejected int64 `json:"rejected,omitempty"`
}

// Snapshot describes a complete snapshot.
type Snapshot struct {
	TakenAt       time.Time `json:"takenAt"`
	Shards        int       `json:"shards"`
	Items         int64     `json:"items"`
	Bytes         int64     `json:"bytes"`
	StoredBytes   int64     `json:"storedBytes"`
	FormatVersion int       `json:"formatVersion"`
}

// Failure is an error with a reason for the status.
type Failure struct {
	// Reason is one of the reasons of this package.
	Reason string
	// Final means that a retry would have the same result.
	Final bool
	// Err describes the cause and what to do.
	Err error
}

// Fail returns a Failure that a retry may fix.
func Fail(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Err: fmt.Errorf(format, args...)}
}

// FailFinally returns a Failure that a retry can't fix.
func FailFinally(reason, format string, args ...any) error {
	return &Failure{Reason: reason, Final: true, Err: fmt.Errorf(format, args...)}
}

// Error returns the text of Err.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// AsFailure returns the Failure that an error is or wraps, or nil.
func AsFailure(err error) *Failure {
	f, _ := errors.AsType[*Failure](err)
	return f
}

// Reasons of an Outcome. Each is the value of a reason in the API, which says how
// to fix what it names.
const (
	ReasonSucceeded = "Succeeded"

	ReasonNoShards         = "NoShards"
	ReasonSizeDiffers      = "SizeDiffers"
	ReasonJobFailed        = "JobFailed"
	ReasonShardUnreachable = "ShardUnreachable"
	ReasonShardLostItems   = "ShardLostItems"
	ReasonKeyDumpDisabled  = "KeyDumpDisabled"
	ReasonSpoolFull        = "SpoolFull"

	ReasonStoreUnreachable        = "StoreUnreachable"
	ReasonStoreNotFound           = "StoreNotFound"
	ReasonStoreAccessDenied       = "StoreAccessDenied"
	ReasonStoreFull               = "StoreFull"
	ReasonStoreReadOnly           = "StoreReadOnly"
	ReasonStoreCertificateInvalid = "StoreCertificateInvalid"
	ReasonStoreFailed             = "StoreFailed"

	ReasonSnapshotNotFound     = "SnapshotNotFound"
	ReasonSnapshotIncomplete   = "SnapshotIncomplete"
	ReasonSnapshotCorrupt      = "SnapshotCorrupt"
	ReasonSnapshotTooNew       = "SnapshotTooNew"
	ReasonSnapshotTooOld       = "SnapshotTooOld"
	ReasonSnapshotOwnedByOther = "SnapshotOwnedByOther"
)
