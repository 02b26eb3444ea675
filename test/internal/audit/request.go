// Package audit reads what was asked of an API server from its audit log, and
// counts it.
package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Request is one that the API server answered.
type Request struct {
	// Received and Answered are by the API server's clock. A watch is answered when it
	// begins.
	Received, Answered time.Time
	User, Verb         string
	// Group of the API, empty for the core one, and Resource with the subresource if
	// there is one.
	Group, Resource string
	Namespace, Name string
	// Code of the answer, as in HTTP, and what it said, if anything.
	Code    int32
	Message string
}

func (r Request) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s/%s in %q: %d %s", r.Received.Format("15:04:05.000"), r.Verb, r.Resource, r.Name, r.Namespace, r.Code, r.Message))
}

// Kind says what a request is counted as.
type Kind int

// The kinds of requests.
const (
	// Upkeep is what an operator asks whether or not there is work: its lease, and who
	// may read its metrics.
	Upkeep Kind = iota
	// Read is a get or a list.
	Read
	// Watch is the beginning of one.
	Watch
	// Event is the write of an event.
	Event
	// Status is the write of a status.
	Status
	// Write is any other one.
	Write
)

// Kind returns what the request is counted as.
func (r Request) Kind() Kind {
	switch {
	case r.Group == "coordination.k8s.io", r.Group == "authentication.k8s.io", r.Group == "authorization.k8s.io":
		return Upkeep
	case r.Verb == "get", r.Verb == "list":
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

// Changes says whether the request is of a kind that writes, events too.
func (r Request) Changes() bool { return r.Kind() >= Event }

// Made says whether an object came of the request that is no event.
func (r Request) Made() bool { return r.Kind() == Write && r.Code == http.StatusCreated }

// event holds the fields that are read of audit.k8s.io/v1 Event.
type event struct {
	Stage                    string           `json:"stage"`
	Verb                     string           `json:"verb"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	StageTimestamp           metav1.MicroTime `json:"stageTimestamp"`
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

// Parse reads a line of the log. It returns false for a line that tells of a request
// once more: a watch has one line for its beginning and one for its end.
func Parse(line []byte) (Request, bool, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return Request{}, false, fmt.Errorf("reading the audit log: %w", err)
	}
	counts := "ResponseComplete"
	if e.Verb == "watch" {
		counts = "ResponseStarted"
	}
	if e.Stage != counts {
		return Request{}, false, nil
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return Request{
		Received: e.RequestReceivedTimestamp.UTC(), Answered: e.StageTimestamp.UTC(), User: e.User.Username, Verb: e.Verb,
		Group: e.ObjectRef.APIGroup, Resource: resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.ResponseStatus.Code, Message: e.ResponseStatus.Message,
	}, true, nil
}
