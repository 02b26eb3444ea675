// Package audit reads requests to an API server from its audit log.
package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is a request with its answer.
type Request struct {
	// Received and Answered are times of the API server. A watch is answered when it begins.
	Received, Answered time.Time
	User, Verb         string
	// DryRun requests store nothing.
	DryRun bool
	// Group is empty for the core API. Resource includes the subresource.
	Group, Resource string
	Namespace, Name string
	// Code is the HTTP status of the answer, Message its text.
	Code    int32
	Message string
	// Body of the request; empty unless the log has it.
	Body string
}

func (r Request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s/%s in %q: %d %s", r.Received.Format("15:04:05.000"), r.Verb, r.Resource, r.Name, r.Namespace, r.Code, r.Message))
}

// Kind of a request.
type Kind int

// The kinds of requests.
const (
	// Upkeep is independent of work: the lease, and reviews of who reads the metrics.
	Upkeep Kind = iota
	// Read is a get, a list, or a dry run.
	Read
	Watch
	Event
	Status
	// Write is any other write.
	Write
)

// Kind returns the kind of the request.
func (r Request) Kind() Kind {
	switch {
	case r.Group == "coordination.k8s.io", r.Group == "authentication.k8s.io", r.Group == "authorization.k8s.io":
		return Upkeep
	case r.Verb == "get", r.Verb == "list", r.DryRun:
		return Read
	case r.Verb == "watch":
		return Watch
	case r.Resource == "events":
		return Event
	case strings.HasSuffix(r.Resource, "/status"):
		return Status
	default:
		return Write
	}
}

// Changes reports whether the request writes something, including events.
func (r Request) Changes() bool { return r.Kind() >= Event }

// Made reports whether the request created an object other than an event.
func (r Request) Made() bool { return r.Kind() == Write && r.Code == http.StatusCreated }

// Parse reads a line of the log. It returns false for a second line about the same request: a watch has one for its
// beginning and one for its end.
func Parse(line []byte) (Request, bool, error) {
	var e auditv1.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Request{}, false, fmt.Errorf("reading the audit log: %w", err)
	}
	counts := auditv1.StageResponseComplete
	if e.Verb == "watch" {
		counts = auditv1.StageResponseStarted
	}
	if e.Stage != counts {
		return Request{}, false, nil
	}
	object, status, body := cmp.Or(e.ObjectRef, &auditv1.ObjectReference{}), cmp.Or(e.ResponseStatus, &metav1.Status{}), cmp.Or(e.RequestObject, &runtime.Unknown{})
	return Request{
		Received: e.RequestReceivedTimestamp.UTC(), Answered: e.StageTimestamp.UTC(), User: e.User.Username, Verb: e.Verb,
		DryRun: strings.Contains(e.RequestURI, "dryRun=All"),
		Group:  object.APIGroup, Resource: strings.TrimSuffix(object.Resource+"/"+object.Subresource, "/"), Namespace: object.Namespace,
		Name: object.Name, Code: status.Code, Message: status.Message, Body: string(body.Raw),
	}, true, nil
}
