package cluster

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/test/internal/audit"
)

// OperatorRequests returns the operator's requests since a time from the audit log of the local cluster.
func OperatorRequests(ctx context.Context, since time.Time) ([]audit.Request, error) {
	return requests(ctx, OperatorAccount, since)
}

// requests returns the requests of a ServiceAccount of the operator's namespace.
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
		if !bytes.Contains(lines.Bytes(), []byte(user)) {
			continue // parsing every line takes seconds
		}
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

// OperatorWrites returns the operator's writes in a namespace since a time, including those that changed nothing.
func OperatorWrites(ctx context.Context, namespace string, since time.Time) ([]audit.Request, error) {
	requests, err := OperatorRequests(ctx, since)
	return slices.DeleteFunc(requests, func(r audit.Request) bool { return r.Namespace != namespace || !r.Changes() }), err
}

// Refusals returns the requests of a ServiceAccount of the operator's namespace since a time for which it had no
// permission, except for those in a namespace that terminates.
func Refusals(ctx context.Context, account string, since time.Time) ([]audit.Request, error) {
	requests, err := requests(ctx, account, since)
	return slices.DeleteFunc(requests, func(r audit.Request) bool {
		return r.Code != http.StatusForbidden || strings.Contains(r.Message, "because it is being terminated")
	}), err
}
