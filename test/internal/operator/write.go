package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Write is a write that the API server accepted.
type Write struct {
	// What identifies it in each run: "PATCH pods cache-0 stop".
	What string
	// Time counts the writes with the same What, from 1.
	Time int
}

func (w Write) String() string {
	if w.Time <= 1 {
		return w.What
	}
	return fmt.Sprintf("%s, time %d", w.What, w.Time)
}

// whatOf returns what a request writes, which is empty for a read and for an event. The request can still be sent.
func whatOf(request *http.Request) (string, error) {
	if request.Method == http.MethodGet || request.Method == http.MethodHead {
		return "", nil
	}
	_, path, _ := strings.Cut(request.URL.Path, "/namespaces/")
	_, path, _ = strings.Cut(path, "/")
	isPod := strings.HasPrefix(path, "pods/")
	switch {
	case path == "events" || strings.HasPrefix(path, "events/"):
		return "", nil
	case isPod:
		path = random.ReplaceAllString(path, "$1$2")
	default:
		path = uid.ReplaceAllString(path, "UID")
	}
	what := request.Method + " " + strings.ReplaceAll(path, "/", " ")
	if !isPod || request.Method != http.MethodPatch {
		return what, nil
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return "", fmt.Errorf("reading the body of a write: %w", err)
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return strings.Join(append([]string{what}, changes(body)...), " "), nil
}

// random is the random end of the name of a pod.
var random = regexp.MustCompile(`^(.*-preflight)-[0-9a-f]+|^(.*)-[a-z0-9]{5}\b`)

// uid is part of the name of a Job.
var uid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// changes returns what a patch of a pod changes: fields of the container or, if there are none, annotations.
func changes(patch []byte) []string {
	var pod struct {
		Kind     string
		Metadata struct{ Annotations map[string]any }
		Spec     struct{ Containers []map[string]any }
	}
	if json.Unmarshal(patch, &pod) != nil || pod.Kind != "" {
		return nil // a whole pod
	}
	var names []string
	for _, container := range pod.Spec.Containers {
		for _, field := range slices.Sorted(maps.Keys(container)) {
			if field != "name" {
				names = append(names, field)
			}
		}
	}
	if names != nil {
		return names
	}
	for _, annotation := range slices.Sorted(maps.Keys(pod.Metadata.Annotations)) {
		name := annotation[strings.LastIndex(annotation, "/")+1:]
		if pod.Metadata.Annotations[annotation] == nil {
			name = "-" + name
		}
		names = append(names, name)
	}
	return names
}
