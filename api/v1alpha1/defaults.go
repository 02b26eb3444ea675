package v1alpha1

import "time"

// Defaults of the CRDs, in seconds unless the name says otherwise, for objects that were
// created without them.
const (
	DefaultBootstrapDeadlineSeconds   = 600
	DefaultFinalBackupDeadlineSeconds = 1800
	DefaultRefillMaxAgeSeconds        = 86400
	DefaultTransferDeadlineSeconds    = 21600
	DefaultStartingDeadlineSeconds    = 3600

	DefaultHitRatioTimeoutSeconds = 600
	DefaultHitRatioPercent        = 90
	DefaultHitRatioMinRequests    = 1000

	DefaultItemsPerSecond            = 20000
	DefaultMebibytesPerSecond        = 32
	DefaultFailedBackupsHistoryLimit = 3
	DefaultServerNameTemplate        = "{shard}.{namespace}.svc:11211"
)

// Seconds returns a field of seconds as a duration, or fallback when it is not set.
func Seconds(n *int32, fallback int32) time.Duration {
	if n != nil {
		fallback = *n
	}
	return time.Duration(fallback) * time.Second
}
