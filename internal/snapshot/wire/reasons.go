package wire

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
