// Package snapshotapi is what the operator tells a Job that copies items, and
// what the Job tells back: a Task as its argument, Progress over HTTP while it
// runs, and an Outcome as its termination message.
//
// A Job may be older than the operator that reads it: fields are added, never
// renamed or removed, and a missing field reads as its zero value.
package snapshotapi

import (
	"time"
)

// Port is the TCP port on which a Job tells its progress, at GET /progress.
const Port = 11213

// Where a Job's pod has what it needs.
const (
	// StorePath is where the volume of a PersistentVolumeClaim is mounted.
	StorePath = "/store"
	// SpoolPath is a volume for what is too much for memory: names of keys, chunks.
	SpoolPath = "/spool"
	// CAPath is the file of the certificates by which an endpoint's is judged.
	CAPath = "/ca/ca.crt"
)

// Exit codes of a Job's program.
const (
	// ExitFailed is worth another try.
	ExitFailed = 1
	// ExitFinal is not: the next try would end the same.
	ExitFinal = 3
)

// Action is what a Job does.
type Action string

// The actions; each is also the command of the program.
const (
	ActionSave   Action = "save"
	ActionLoad   Action = "load"
	ActionDelete Action = "delete"
)

// Task is what a Job is to do, the value of its argument -task as JSON.
type Task struct {
	// ID is the UID of the object that the Job is of. A snapshot bears that of its
	// backup, and whoever finds a whole one with its own ID has done its work before.
	ID    string `json:"id"`
	Store Store  `json:"store"`
	// Path of the snapshot in the store.
	Path string `json:"path"`
	// Memcached whose items are saved, for the manifest.
	Memcached Memcached `json:"memcached,omitzero"`
	// Servers are the addresses of all shards, as host:port, by ordinal.
	Servers []string `json:"servers,omitempty"`
	// Limits a shard.
	ItemsPerSecond int   `json:"itemsPerSecond,omitempty"`
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// Load is for ActionLoad.
	Load *Load `json:"load,omitempty"`
}

// Memcached is the one whose items are saved.
type Memcached struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Version   string `json:"version,omitempty"`
}

// Load is what matters to a restore only.
type Load struct {
	// Replace overwrites what a shard has.
	Replace bool `json:"replace,omitempty"`
	// MaxAge refuses an older snapshot; 0 is none.
	MaxAge time.Duration `json:"maxAge,omitempty"`
	// MaxTTL bounds how long items live; 0 is none.
	MaxTTL time.Duration `json:"maxTTL,omitempty"`
	// Shards, by ordinal, that are filled; none is all.
	Shards []int `json:"shards,omitempty"`
	// Ring routes keys where the snapshot has another number of shards; empty: such
	// a snapshot is refused. It is a v1alpha1.Ring.
	Ring string `json:"ring,omitempty"`
	// RingServers are the names by which clients know the servers, by ordinal.
	RingServers []string `json:"ringServers,omitempty"`
}

// Store is where snapshots are kept: exactly one of its fields is set.
type Store struct {
	// Folder of a file system.
	Folder string `json:"folder,omitempty"`
	S3     *S3    `json:"s3,omitempty"`
}

// S3 is a bucket. The credentials are in the environment, as Amazon names them.
type S3 struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`
	// CAFile holds PEM certificates; empty is the system's.
	CAFile string `json:"caFile,omitempty"`
}
