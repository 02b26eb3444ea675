// Package agentapi is what the agent tells about its shard: the answer to
// GET /status, read by the operator and by another pod's agent.
//
// It imports the standard library only, since the agent does. Agents that run
// may be older than the operator: fields are added, never renamed or removed,
// and a missing field reads as its zero value.
package agentapi

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Port is the TCP port on which every agent listens.
const Port = 11212

// MemcachedPort is the TCP port on which memcached serves.
const MemcachedPort = 11211

// Names of the files in the pod-info volume. Each holds one pod annotation,
// brought by the kubelet's downward API; an empty file is an absent annotation.
const (
	// ArgumentsFile holds memcached's argument words as a JSON array.
	ArgumentsFile = "arguments"
	// RestartFile holds any value; a new one restarts memcached in place.
	RestartFile = "restart"
	// StopFile holds the token by which a stop of the container, but not of the
	// pod, is announced. While it does, new arguments and a new restart wait: the
	// next container starts with the arguments, or they are acted on when the file
	// is empty again.
	StopFile = "stop"
	// HoldFile holds a time, as RFC 3339. A container that starts before it does not
	// serve until then, or until the file is empty; memcached runs, and is filled.
	// What is no time holds nothing.
	HoldFile = "hold-until"
)

// AnnounceArguments returns a stop's token with a mark of the text of the arguments
// that the next container is to start with: the kubelet may start it before it
// brings their file up to date.
func AnnounceArguments(token, arguments string) string {
	return token + "/" + mark(arguments)
}

// AnnouncedArguments says whether a token bears the mark of that text of
// arguments, or none.
func AnnouncedArguments(token, arguments string) bool {
	_, marked, ok := strings.Cut(token, "/")
	return !ok || marked == mark(arguments)
}

func mark(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Phase is where memcached's life stands.
type Phase string

// The phases in the order in which a shard passes through them; Restarting
// leads back to Serving.
const (
	PhaseStarting   Phase = "Starting"
	PhaseServing    Phase = "Serving"
	PhaseRestarting Phase = "Restarting"
	PhaseDraining   Phase = "Draining"
	PhaseStopping   Phase = "Stopping"
)

// StartResult says whether memcached came up with its items.
type StartResult string

// The results of a start.
const (
	StartWarm StartResult = "Warm"
	StartCold StartResult = "Cold"
)

// Start is what happened when memcached was last started.
type Start struct {
	Result StartResult `json:"result,omitempty"`
	// Reason is a sentence for a person.
	Reason string `json:"reason,omitempty"`
	// Items is how many items memcached held right after the start.
	Items int64 `json:"items"`
	// ItemsBefore is how many it held when it was saved; 0 when nothing was.
	ItemsBefore int64 `json:"itemsBefore"`
	// At is when memcached was ready.
	At time.Time `json:"at"`
}

// Status is the answer to GET /status.
type Status struct {
	Phase        Phase  `json:"phase"`
	PodUID       string `json:"podUID"`
	AgentVersion string `json:"agentVersion"`

	// Version is memcached's own answer to "version".
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Arguments are memcached's argument words in effect, without the agent's own.
	Arguments []string `json:"arguments,omitempty"`
	// ArgumentsError is a sentence that says why newer arguments are not in
	// effect; empty when they are.
	ArgumentsError string `json:"argumentsError,omitempty"`

	// AnnouncedStop is the token of the stop file when it was last read.
	AnnouncedStop string `json:"announcedStop,omitempty"`
	// Restart is the value of the restart file whose restart is over: Start came of
	// it, or of a later one.
	Restart string `json:"restart,omitempty"`
	// HoldUntil is when the shard begins to serve at the latest; zero when nothing
	// holds it.
	HoldUntil time.Time `json:"holdUntil,omitzero"`

	Start Start `json:"start"`

	Items           int64 `json:"items"`
	Bytes           int64 `json:"bytes"`
	MaxBytes        int64 `json:"maxBytes"`
	CurrConnections int64 `json:"currConnections"`
	UptimeSeconds   int64 `json:"uptimeSeconds"`

	// RecentGets is how many keys memcached was asked for over about the last
	// minute, by get, gets, gat, touch and mg, and RecentHits how many of them were
	// there. Both count from the start of this memcached, which may be less than a
	// minute ago, and both are 0 where it gives no stats. An agent older than these
	// fields gives 0 too.
	RecentGets int64 `json:"recentGets"`
	RecentHits int64 `json:"recentHits"`
}

// Proof is what "agent prove" writes, as JSON, to the container's termination log
// when the image's memcached starts with the arguments that it is to get. Where it
// does not, the command fails and a sentence for a person stands there instead.
type Proof struct {
	// Version is what "memcached -V" gives, such as "1.6.45".
	Version string `json:"version"`
}
