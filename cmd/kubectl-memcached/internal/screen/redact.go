package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// omitted replaces what a report doesn't contain.
const omitted = "(omitted)"

// quoted is where a message quotes what may contain a key or a value: the last line of a memcached that logged requests, or an answer
// that can't be read.
var quoted = regexp.MustCompile(`(memcached (?:was terminated by signal|exited unexpectedly with code)[^:\n]*: )(?:[<>]|\\u003[ce]).*|(the answer violates the memcached protocol: ).*`)

// RedactText omits what messages in a text quote from memcached, each to the end of its line.
func RedactText(text []byte) []byte { return quoted.ReplaceAll(text, []byte("${1}${2}"+omitted)) }

// ownContainers are those whose specs the operator writes, without values of Secrets.
var ownContainers = map[string]bool{"memcached": true, "agent": true}

// foreignFields are what a report contains of the other containers.
var foreignFields = []string{"name", "image", "resources", "ports", "securityContext", "restartPolicy"}

// Redact returns an object as YAML without what may be secret: values of environment variables, annotations of others, and how
// containers of others start.
func Redact(o any) ([]byte, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("writing an object: %w", err)
	}
	return yaml.Marshal(redacted("", value))
}

func redacted(field string, value any) any {
	switch value := value.(type) {
	case string:
		return string(RedactText([]byte(value)))
	case []any:
		for i := range value {
			value[i] = redacted(field, value[i])
		}
	case map[string]any:
		switch {
		case field == "env":
			if value["value"] != nil {
				value["value"] = omitted
			}
		case (field == "containers" || field == "initContainers" || field == "ephemeralContainers") && !ownContainers[fmt.Sprint(value["name"])]:
			kept := map[string]any{}
			for _, f := range foreignFields {
				if value[f] != nil {
					kept[f] = value[f]
				}
			}
			value = kept
		case field == "annotations":
			for key := range value {
				if domain, _, _ := strings.Cut(key, "/"); !strings.HasSuffix(domain, "memcached-operator.io") {
					value[key] = omitted
				}
			}
			return value
		}
		delete(value, "managedFields")
		for key := range value {
			value[key] = redacted(key, value[key])
		}
		return value
	}
	return value
}

// RedactLog returns at most so many bytes of the end of a log of agents or of the operator, in whole lines, and how many lines it
// omits: those of memcached, which contain keys when it logs requests.
func RedactLog(log []byte, most int) (kept []byte, lines int) {
	var all [][]byte
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) || isOfMemcached(line) {
			lines++
			continue
		}
		all = append(all, line)
	}
	size, first := 0, len(all)
	for first > 0 && size+len(all[first-1]) <= most {
		first--
		size += len(all[first])
	}
	return bytes.Join(all[first:], nil), lines + first
}

func isOfMemcached(line []byte) bool {
	var entry struct {
		Source any `json:"source"`
	}
	if err := json.Unmarshal(line, &entry); err == nil {
		return entry.Source == "memcached"
	}
	// A line of JSON that can't be read may be of memcached.
	return line[0] == '{' || bytes.Contains(line, []byte(" source=memcached"))
}
