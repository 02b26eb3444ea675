package cluster

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

// OperatorRequests returns what the operator asked since a time, from the audit
// log of the local cluster's API server. Leases are left out.
func OperatorRequests(ctx context.Context, since time.Time) ([]audit.Request, error) {
	return requests(ctx, OperatorAccount, since)
}

// requests returns what a ServiceAccount of the operator's namespace asked.
func requests(ctx context.Context, account string, since time.Time) ([]audit.Request, error) {
	log, err := Local(ctx, "logs", "audit")
	if err != nil {
		return nil, err
	}
	user := "system:serviceaccount:" + OperatorNamespace + ":" + account
	var requests []audit.Request
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r, counts, err := audit.Parse(lines.Bytes())
		if err != nil {
			return nil, err
		}
		if counts && r.User == user && !r.Received.Before(since) {
			requests = append(requests, r)
		}
	}
	return requests, lines.Err()
}

// OperatorWrites returns what the operator wrote into a namespace since a time.
// Writes that changed nothing are there too.
func OperatorWrites(ctx context.Context, namespace string, since time.Time) ([]audit.Request, error) {
	requests, err := OperatorRequests(ctx, since)
	return slices.DeleteFunc(requests, func(r audit.Request) bool { return r.Namespace != namespace || !r.Changes() }), err
}

// OperatorRefusals returns what the operator asked since a time and had no right
// to.
func OperatorRefusals(ctx context.Context, since time.Time) ([]audit.Request, error) {
	return Refusals(ctx, OperatorAccount, since)
}

// Refusals returns what a ServiceAccount of the operator's namespace asked since a
// time and had no right to. A namespace that ends refuses everybody, and is left
// out.
func Refusals(ctx context.Context, account string, since time.Time) ([]audit.Request, error) {
	requests, err := requests(ctx, account, since)
	return slices.DeleteFunc(requests, func(r audit.Request) bool {
		return r.Code != http.StatusForbidden || strings.Contains(r.Message, "because it is being terminated")
	}), err
}
