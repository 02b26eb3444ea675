package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write is a request by which the operator changed something, or asked to.
type Write struct {
	At   time.Time
	Verb string
	// What is the object as resource/name, with the subresource if there is one.
	Namespace, What string
	Code            int32
}

func (w Write) String() string {
	return fmt.Sprintf("%s %s %s in %q: %d", w.At.Format("15:04:05.000"), w.Verb, w.What, w.Namespace, w.Code)
}

// auditEvent holds the fields that are read of audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb                     string           `json:"verb"`
	RequestReceivedTimestamp metav1.MicroTime `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
}

// OperatorWrites returns what the operator wrote into a namespace since a time,
// from the audit log of the local cluster's API server. Writes that changed
// nothing are there too.
func OperatorWrites(ctx context.Context, namespace string, since time.Time) ([]Write, error) {
	log, err := Local(ctx, "logs", "audit")
	if err != nil {
		return nil, err
	}
	const operator = "system:serviceaccount:" + OperatorNamespace + ":" + OperatorAccount
	var writes []Write
	lines := bufio.NewScanner(strings.NewReader(log))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if e.User.Username != operator || e.ObjectRef.Namespace != namespace || e.RequestReceivedTimestamp.Time.Before(since) || !isWrite(e.Verb) {
			continue
		}
		what := e.ObjectRef.Resource + "/" + e.ObjectRef.Name
		if e.ObjectRef.Subresource != "" {
			what += "/" + e.ObjectRef.Subresource
		}
		writes = append(writes, Write{e.RequestReceivedTimestamp.Time, e.Verb, e.ObjectRef.Namespace, what, e.ResponseStatus.Code})
	}
	return writes, lines.Err()
}

func isWrite(verb string) bool {
	return verb != "get" && verb != "list" && verb != "watch"
}
