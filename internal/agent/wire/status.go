// Package wire is the agent's interface: the pod annotations that it reads, and its
// status, which the operator and the agents of other pods read.
//
// It imports the standard library only. A running agent may be older than the
// operator: fields are added, never renamed or removed, and a missing field has its
// zero value.
package wire

import "time"

// Port is the TCP port on which every agent listens.
const Port = 11212

// StatusPath is the path of the status.
const StatusPath = "/status"

// HandoverPort is the TCP port on which the agent of a pod that is being deleted or replaced hands
// its items over.
const HandoverPort = 11213

// MetricsPort is the TCP port of the agent's /metrics, that of every memcached exporter.
const MetricsPort = 9150

// DiscoveryPort is the TCP port on which clients request the addresses of all shards from the agent.
const DiscoveryPort = 11214

// DiscoveryItem is the key of the item with the same addresses, which AWS's client for Java
// requests from the shards themselves.
const DiscoveryItem = "AmazonElastiCache:cluster"

// LoopbackPort is the port of the pod's loopback interface at which memcached accepts connections
// without TLS while spec.tls is set: those of the agent.
const LoopbackPort = 11215

// MemcachedPort is the TCP port on which memcached serves.
const MemcachedPort = 11211

// Phase is a phase in the life of memcached.
type Phase string

// The phases in the order in which a shard passes through them; Restarting leads
// back to Serving or Draining. A pod is in Receiving from when it has found the other
// pod of its shard until it has that pod's items, or has given up. With ModeAvailable it
// is in Following, and ready, while the other pod serves its remaining connections. A pod is in HandedOver, without memcached,
// when another one has its items, or may have changed them, until it is deleted.
const (
	PhaseStarting   Phase = "Starting"
	PhaseReceiving  Phase = "Receiving"
	PhaseFollowing  Phase = "Following"
	PhaseServing    Phase = "Serving"
	PhaseRestarting Phase = "Restarting"
	PhaseDraining   Phase = "Draining"
	PhaseStopping   Phase = "Stopping"
	PhaseHandedOver Phase = "HandedOver"
)

// Phases are all phases.
var Phases = []Phase{PhaseStarting, PhaseReceiving, PhaseFollowing, PhaseServing, PhaseRestarting, PhaseDraining, PhaseStopping, PhaseHandedOver}

// Mode is how a handover ends.
type Mode string

// The modes of a handover.
const (
	// ModeStrict: the new pod serves once the other one has stopped and the new one has
	// all its items. No client reads an older value.
	ModeStrict Mode = "Strict"
	// ModeAvailable: both pods serve for a few seconds. Clients can read older values in
	// that time, and not later.
	ModeAvailable Mode = "Available"
)

// StartResult is whether memcached started with its items.
type StartResult string

// The results of a start.
const (
	StartWarm StartResult = "Warm"
	StartCold StartResult = "Cold"
	// StartHandedOver is a start with the items of the shard's previous pod.
	StartHandedOver StartResult = "HandedOver"
)

// StartResults are all results of a start.
var StartResults = []StartResult{StartWarm, StartCold, StartHandedOver}

// FirstStart is the reason of a start without items in a pod that has none, and has received none.
const FirstStart = "no saved items: first start of this pod"

// Start describes the last start of memcached.
type Start struct {
	Result StartResult `json:"result,omitempty"`
	// Reason is a message for the user.
	Reason string `json:"reason,omitempty"`
	// Items is the number of items right after the start.
	Items int64 `json:"items"`
	// ItemsBefore is the number of items that were saved, or that the previous pod had
	// when its memcached stopped; 0 if none were.
	ItemsBefore int64 `json:"itemsBefore"`
	// At is when memcached was ready.
	At time.Time `json:"at"`
	// HandoverSeconds is how long a handover took. For GapSeconds of it, neither pod
	// served.
	HandoverSeconds float64 `json:"handoverSeconds,omitempty"`
	GapSeconds      float64 `json:"gapSeconds,omitempty"`
	// Mode is that of the handover. It can be ModeStrict although ModeAvailable is set,
	// if the other pod can do no other; Reason says so.
	Mode Mode `json:"mode,omitempty"`
	// UnavailableSeconds is for how long no memcached answered clients before this start: since
	// the pod's previous one stopped, or GapSeconds. In a new pod without a handover it is 0.
	UnavailableSeconds float64 `json:"unavailableSeconds,omitempty"`
	// StaleSeconds is the longest time for which clients could read a value although a
	// newer one was stored in the other pod; 0 with ModeStrict.
	StaleSeconds float64 `json:"staleSeconds,omitempty"`
}

// Progress is how far a handover is.
type Progress struct {
	// Pass counts the scans of the other pod's items, from 1. It is 0 while the other
	// pod doesn't hand over its items yet.
	Pass int `json:"pass"`
	// Items is the number of items received so far, Total the number of items of the
	// other pod.
	Items int64 `json:"items"`
	Total int64 `json:"total"`
}

// Status is the response to GET /status.
type Status struct {
	Phase        Phase  `json:"phase"`
	PodUID       string `json:"podUID"`
	AgentVersion string `json:"agentVersion"`

	// PodIP and HandoverPort are where this agent hands over its items. HandoverPort is
	// 0 if it cannot.
	PodIP        string `json:"podIP,omitempty"`
	HandoverPort int    `json:"handoverPort,omitempty"`
	// Handover is not nil while this pod receives items.
	Handover *Progress `json:"handover,omitempty"`

	// Version is memcached's own response to "version".
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Arguments are memcached's argument words in effect, without the agent's own.
	Arguments []string `json:"arguments,omitempty"`
	// ArgumentsError is a message for the user that says why newer arguments are not
	// in effect; empty if they are.
	ArgumentsError string `json:"argumentsError,omitempty"`

	// AnnouncedStop is the token of the stop file when it was last read.
	AnnouncedStop string `json:"announcedStop,omitempty"`
	// Restart is the last value of the restart file for which memcached has restarted.
	// Start describes that start, or a later one.
	Restart string `json:"restart,omitempty"`
	// Secrets are what the agent knows of the Secrets that its pod mounts; nil if it mounts none.
	Secrets *Secrets `json:"secrets,omitempty"`
	// Scaling is nil if this agent can't move keys between shards.
	Scaling *ScalingStatus `json:"scaling,omitempty"`

	Start Start `json:"start"`

	Items           int64 `json:"items"`
	Bytes           int64 `json:"bytes"`
	MaxBytes        int64 `json:"maxBytes"`
	CurrConnections int64 `json:"currConnections"`
	UptimeSeconds   int64 `json:"uptimeSeconds"`

	// RecentGets is the number of keys that clients looked up in about the last minute
	// by get, gets, gat, touch and mg. RecentHits is how many of them memcached found.
	// Both count from the start of this memcached, if that is less than a minute ago.
	RecentGets int64 `json:"recentGets"`
	RecentHits int64 `json:"recentHits"`
	// Gets and Hits are the same since the start of this memcached, or since a client reset its
	// statistics.
	Gets int64 `json:"gets,omitempty"`
	Hits int64 `json:"hits,omitempty"`
}

// Secrets are what an agent knows of the Secrets that its pod mounts.
type Secrets struct {
	Certificate Certificate `json:"certificate"`
	Users       Users       `json:"users"`
	// ReadAt is when the operator read it.
	ReadAt time.Time `json:"-"`
}

// Users is what an agent knows of the Secret with the users.
type Users struct {
	// Error is a message for the user that says why the content of the Secret can't be used; empty
	// if it can.
	Error string `json:"error,omitempty"`
}

// Certificate is what an agent knows of the Secret with the certificate for TLS.
type Certificate struct {
	// Error is a message for the user that says why the content of the Secret can't be used; empty
	// if it can.
	Error string `json:"error,omitempty"`
	// SHA256 is the fingerprint, as hexadecimal digits, of the certificate that memcached serves. It
	// is empty while memcached serves without TLS, as are NotBefore and NotAfter.
	SHA256    string    `json:"sha256,omitempty"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// Offered identifies the certificate and the CAs in the Secret; empty if they can't be used.
	Offered string `json:"offered,omitempty"`
	// RestartRequired is a message for the user that says why memcached has to restart before it
	// serves what the Secret contains; empty if it serves that, or can't use it.
	RestartRequired string `json:"restartRequired,omitempty"`
	// PlainConnections is the number of open connections without TLS where both are accepted.
	PlainConnections int64 `json:"plainConnections,omitempty"`
	// LastPlainConnection is when one was last opened or closed, or when the agent began to count.
	LastPlainConnection time.Time `json:"lastPlainConnection,omitzero"`
}

// ExitTimedOut is the exit code of an agent that waited for memcached for too long. It is no verdict about the image: the
// node can be overloaded.
const ExitTimedOut = 75

// Preflight is the result of a successful "agent preflight", written as JSON to the
// container's termination log. If the check fails, the log contains a message for
// the user instead.
type Preflight struct {
	// Version is what "memcached -V" prints, such as "1.6.45".
	Version string `json:"version"`
}
