package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is what the operator asked of the API server.
type Request struct {
	At   time.Time
	Verb string
	// Group of the API, empty for the core one, and Resource with the subresource if
	// there is one.
	Group, Resource string
	Namespace, Name string
	// Code and Message of the answer, as in HTTP.
	Code    int32
	Message string
}

func (r Request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s/%s in %q: %d %s", r.At.Format("15:04:05.000"), r.Verb, r.Resource, r.Name, r.Namespace, r.Code, r.Message))
}

// auditEvent holds the fields that are read of audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb                     string           `json:"verb"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int32  `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
}

// OperatorRequests returns what the operator asked since a time, from the audit
// log of the local cluster's API server. Leases are left out.
func OperatorRequests(ctx context.Context, since time.Time) ([]Request, error) {
	return requests(ctx, OperatorAccount, since)
}

// requests returns what a ServiceAccount of the operator's namespace asked.
func requests(ctx context.Context, account string, since time.Time) ([]Request, error) {
	log, err := Local(ctx, "logs", "audit")
	if err != nil {
		return nil, err
	}
	user := "system:serviceaccount:" + OperatorNamespace + ":" + account
	var requests []Request
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.User.Username != user || e.RequestReceivedTimestamp.Time.Before(since) {
			continue
		}
		resource := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			resource += "/" + e.ObjectRef.Subresource
		}
		requests = append(requests, Request{e.RequestReceivedTimestamp.Time, e.Verb, e.ObjectRef.APIGroup, resource,
			e.ObjectRef.Namespace, e.ObjectRef.Name, e.ResponseStatus.Code, e.ResponseStatus.Message})
	}
	return requests, lines.Err()
}

// OperatorWrites returns what the operator wrote into a namespace since a time.
// Writes that changed nothing are there too.
func OperatorWrites(ctx context.Context, namespace string, since time.Time) ([]Request, error) {
	requests, err := OperatorRequests(ctx, since)
	return slices.DeleteFunc(requests, func(r Request) bool { return r.Namespace != namespace || !isWrite(r.Verb) }), err
}

// OperatorRefusals returns what the operator asked since a time and had no right
// to.
func OperatorRefusals(ctx context.Context, since time.Time) ([]Request, error) {
	return Refusals(ctx, OperatorAccount, since)
}

// Refusals returns what a ServiceAccount of the operator's namespace asked since a
// time and had no right to. A namespace that ends refuses everybody, and is left
// out.
func Refusals(ctx context.Context, account string, since time.Time) ([]Request, error) {
	requests, err := requests(ctx, account, since)
	return slices.DeleteFunc(requests, func(r Request) bool {
		return r.Code != http.StatusForbidden || strings.Contains(r.Message, "because it is being terminated")
	}), err
}

func isWrite(verb string) bool {
	return verb != "get" && verb != "list" && verb != "watch"
}
