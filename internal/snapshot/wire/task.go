// Package wire defines what the operator and a Job that copies items exchange: a Task
// as the Job's argument, Progress over HTTP while it runs, and an Outcome as its
// termination message.
//
// A Job may be older than the operator that reads its outcome. Fields are therefore
// added, never renamed or removed, and a missing field is its zero value.
package wire

import "time"

// Port and ProgressPath are where a Job's pod reports its progress.
const (
	Port         = 11213
	ProgressPath = "/progress"
)

// Paths in a Job's pod.
const (
	// StorePath is where the volume of a PersistentVolumeClaim is mounted.
	StorePath = "/store"
	// SpoolPath is a volume for the names of keys, which may exceed memory.
	SpoolPath = "/spool"
	// TLSPath is a directory with ca.crt, the CA bundle that verifies the servers' certificates, and,
	// for a client certificate, tls.crt and tls.key. Without ca.crt, the system's CAs verify them.
	TLSPath = "/tls"
	// UsersPath is a directory with the users of the servers.
	UsersPath = "/users"
	// CAPath is the CA bundle that verifies the endpoint's certificate.
	CAPath = "/ca/ca.crt"
)

// ProxyVariable is an environment variable with the URL of a proxy for S3, which has
// precedence over those that all programs know.
const ProxyVariable = "STORE_PROXY"

// SaveGrace is how long the pod of a save that is stopped may delete what it wrote, until Kubernetes kills it. It is
// shorter than the ten minutes after which the deletion of a backup, a transfer that ought to have finished, and
// autoscalers of nodes don't wait for a pod any more.
const SaveGrace = 9 * time.Minute

// Exit codes of a Job's program.
const (
	// ExitFailed is a failure that a retry may fix.
	ExitFailed = 1
	// ExitFinal is a failure that a retry can't fix.
	ExitFinal = 3
)

// Action is what a Job does.
type Action string

// The actions, which are also the commands of the program.
const (
	ActionSave   Action = "save"
	ActionLoad   Action = "load"
	ActionDelete Action = "delete"
)

// Task describes what a Job does. It is the argument -task as JSON.
type Task struct {
	// ID is the UID of the object that owns the Job. A snapshot contains the ID of the
	// task that wrote it, so that a retry detects that it is already complete.
	ID    string `json:"id"`
	Store Store  `json:"store"`
	// Path of the snapshot in the store.
	Path string `json:"path"`
	// Memcached whose items are saved, for the manifest, or which is filled. Loads of operators up to 1.1.0 lack it.
	Memcached Memcached `json:"memcached,omitzero"`
	// Servers are the addresses of all shards, as host:port, by ordinal.
	Servers []string `json:"servers,omitempty"`
	// TLS of the connections to the servers; nil means that they are plain.
	TLS *TLS `json:"tls,omitempty"`
	// Login is whether to log in to the servers as one of the users in the directory UsersPath, which has a file with the
	// password of each.
	Login bool `json:"login,omitempty"`
	// Limits of each shard; 0 means none.
	ItemsPerSecond int   `json:"itemsPerSecond,omitempty"`
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// SpoolBytes limits the keys of a save on the Job's own volume; 0 means none.
	SpoolBytes int64 `json:"spoolBytes,omitempty"`
	// Load is for ActionLoad.
	Load *Load `json:"load,omitempty"`
}

// TLS configures the connections to the servers. The files are in the directory TLSPath, named as in a
// Secret of the type kubernetes.io/tls.
type TLS struct {
	// ServerNames are the host names for which the servers' certificates must be valid, by ordinal.
	ServerNames []string `json:"serverNames"`
	// ClientCertificate is whether to present the certificate of tls.crt and tls.key.
	ClientCertificate bool `json:"clientCertificate,omitempty"`
	// AllowPlain is whether to continue without TLS with a server that doesn't use it.
	AllowPlain bool `json:"allowPlain,omitempty"`
}

// Memcached identifies a Memcached. Only that of a save has a version.
type Memcached struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Version   string `json:"version,omitempty"`
}

// Load are the options of a restore.
type Load struct {
	// Replace overwrites existing items.
	Replace bool `json:"replace,omitempty"`
	// MaxAge rejects an older snapshot; 0 means no limit.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// MaxTTL limits the time to live of items; 0 means no limit.
	MaxTTL time.Duration `json:"maxTTL,omitempty"`
	// Shards to restore, by ordinal; empty means all.
	Shards []int `json:"shards,omitempty"`
	// Ring is the name of a ring of package ring. It maps keys to shards if the snapshot
	// is of a Memcached with another name or namespace, or has a different number of
	// shards, which is an error without a ring.
	Ring string `json:"ring,omitempty"`
	// RingServers are the names that clients use for the servers, by ordinal.
	RingServers []string `json:"ringServers,omitempty"`
}

// Store is where snapshots are stored. Exactly one of its fields is set.
type Store struct {
	// Folder is an absolute path.
	Folder string `json:"folder,omitempty"`
	S3     *S3    `json:"s3,omitempty"`
}

// S3 is a bucket. Its credentials are environment variables: see store.Open.
type S3 struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	// CAFile is a CA bundle (PEM); empty means the system's.
	CAFile string `json:"caFile,omitempty"`
}
