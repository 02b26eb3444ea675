package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Names of the files in the pod-info volume. The kubelet's downward API copies one
// pod annotation into each; an empty file is an absent annotation.
const (
	// ArgumentsFile contains memcached's argument words as a JSON array.
	ArgumentsFile = "arguments"
	// RestartFile contains any value; a new one restarts memcached in place.
	RestartFile = "restart"
	// StopFile contains the token that announces a stop of the container, but not of
	// the pod, within the next minute. While a stop is announced, new arguments and a requested restart wait:
	// the next container starts with the arguments, or the agent applies them when the
	// file is empty again.
	StopFile = "stop"
	// ReceiveFile contains, as Request, which pod of the shard this one replaces. It receives the items although that one isn't
	// being deleted, or has only a few seconds.
	ReceiveFile = "receive"
	// ProtectionFile contains what the spec states about the protections of the cache, as Protections in JSON.
	ProtectionFile = "protection"
	// DiscoveryFile contains what clients with auto discovery read: a line with the version of
	// the list and one with the shards as host|ip|port, divided by spaces.
	DiscoveryFile = "discovery"
)

// Request is what the operator requests of the pod that replaces another one.
type Request struct {
	// PodUID is that of the other pod.
	PodUID string
	// GraceSeconds is the grace period with which that pod is deleted, if that is shorter than its own; 0 if not.
	GraceSeconds int64
}

// ParseRequest parses what String returned. A text that it can't read requests nothing.
func ParseRequest(text string) (r Request) {
	uid, grace, _ := strings.Cut(strings.TrimSpace(text), " ")
	r.PodUID = uid
	r.GraceSeconds, _ = strconv.ParseInt(grace, 10, 32)
	return r
}

// String returns the UID, and after a space the seconds, if there are some: an older agent knows the UID only.
func (r Request) String() string {
	if r.GraceSeconds == 0 {
		return r.PodUID
	}
	return r.PodUID + " " + strconv.FormatInt(r.GraceSeconds, 10)
}

// Protections are the modes of a cache's protections that a spec states, by the names of their fields. A protection
// without a mode isn't stated, and a pod that has it keeps it: an operator that doesn't know the field can't state it.
type Protections map[string]string

// The protections that memcached's arguments switch on, and the mode that switches one off on purpose.
const (
	ProtectionAuth = "auth"
	ProtectionTLS  = "tls"
	ProtectionOff  = "Disabled"
)

// ParseProtections parses what String returned. A text that it can't read states nothing.
func ParseProtections(text string) (p Protections) {
	_ = json.Unmarshal([]byte(text), &p)
	return p
}

func (p Protections) String() string {
	text, _ := json.Marshal(p) // strings can be marshaled
	return string(text)
}

// AnnouncementTimeout is how long an announced stop counts. The kubelet stops the
// container within seconds. If the operator does not change the pod after all, a later
// SIGTERM is the end of the pod, which must be drained.
const AnnouncementTimeout = time.Minute

// AnnounceArguments returns a stop token with a hash of the arguments that the next
// container must start with: the kubelet may start it before it updates their file.
func AnnounceArguments(token, arguments string) string {
	return token + "/" + hash(arguments)
}

// AnnouncedArguments reports whether a token has the hash of these arguments, or
// none.
func AnnouncedArguments(token, arguments string) bool {
	_, announced, ok := strings.Cut(token, "/")
	return !ok || announced == hash(arguments)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}
