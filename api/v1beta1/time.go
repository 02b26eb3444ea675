package v1beta1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The times that a status can contain: the API server rejects years of five digits, and stores
// the zero time as none.
var (
	minTime = time.Unix(0, 0)
	maxTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Time returns the time nearest to t that a status can contain, in whole seconds.
func Time(t time.Time) metav1.Time {
	switch {
	case t.Before(minTime):
		t = minTime
	case t.After(maxTime):
		t = maxTime
	}
	return metav1.NewTime(t.Truncate(time.Second))
}
