package wire

import (
	"encoding/json"
	"fmt"
)

// ScalingFile contains, as Scaling in JSON, how the keys move while the number of shards changes. Only pods have it that get keys
// of other shards; a pod of an operator of release 1.0.0 doesn't have the file.
const ScalingFile = "scaling"

// ScalingStep is a step in which keys move to other shards.
type ScalingStep string

// The steps in their order.
const (
	// ScalingCopy: the new owners of keys copy the items of the old ones, whom clients use.
	ScalingCopy ScalingStep = "Copy"
	// ScalingPublished: clients may use both.
	ScalingPublished ScalingStep = "Published"
	// ScalingClose: clients use the new owners only.
	ScalingClose ScalingStep = "Close"
)

// Steps of a request that isn't a change: From equals To, and no items move.
const (
	// ScalingPurge: the shard deletes the items of keys that clients look for on other shards.
	ScalingPurge ScalingStep = "Purge"
	// ScalingCount: it only counts them.
	ScalingCount ScalingStep = "Count"
)

// Scaling is what the operator requests of the pod of a shard that gets keys of other shards, or purges its own.
type Scaling struct {
	// ID distinguishes it from other changes. Without one, it withdraws the former request.
	ID string `json:"id"`
	// Ring is that of the clients, by its name in package ring.
	Ring string `json:"ring"`
	// From and To are the servers as clients name them, by ordinal, before and after.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Ordinal is that of the pod's own shard.
	Ordinal int `json:"ordinal"`
	// Agents are the agents behind the Services of the shards of From, by ordinal, as host:port.
	Agents []string    `json:"agents"`
	Step   ScalingStep `json:"step"`
	// Written is when it was written to the pod, in seconds since 1970. A kubelet can miss it until it is written again.
	Written int64 `json:"written,omitempty"`
}

// ParseScaling parses what String returned. An empty text is nil.
func ParseScaling(text string) (*Scaling, error) {
	if text == "" {
		return nil, nil
	}
	s := &Scaling{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("parsing the request to move keys: %w", err)
	}
	return s, nil
}

func (s Scaling) String() string {
	text, _ := json.Marshal(s) // strings can be marshaled
	return string(text)
}

// ScalingStatus is what an agent reports that can move keys to other shards and from them.
type ScalingStatus struct {
	// ID is that of the request; empty without one.
	ID string `json:"id,omitempty"`
	// Requested is the step of the request that the agent has read.
	Requested ScalingStep `json:"requested,omitempty"`
	// Step is that which this pod has completed. After ScalingCopy it has the items of its keys, after ScalingPublished it counts with
	// clients that use both, after ScalingClose nothing of the change is left.
	Step ScalingStep `json:"step,omitempty"`
	// Moved is the number of items that this pod and their old owners have, Total that of the items to be copied, as far as known.
	Moved int64 `json:"moved,omitempty"`
	Total int64 `json:"total,omitempty"`
	// StaleSeconds bounds how old a value can be that a client reads from one owner after another client has changed it in the other.
	StaleSeconds float64 `json:"staleSeconds,omitempty"`
	// Deleted is the number of items that were deleted since the owners disagreed, or since only the new one had them, Purged that of
	// the old owners' copies. After ScalingPurge, Purged is the number of items that this pod has deleted, after ScalingCount that which it
	// would delete. PurgedBytes is the size of their keys and values then.
	Deleted     int64 `json:"deleted,omitempty"`
	Purged      int64 `json:"purged,omitempty"`
	PurgedBytes int64 `json:"purgedBytes,omitempty"`
	// Problem is a message for the user that says why no items are copied, and why a later attempt would not help.
	Problem string `json:"problem,omitempty"`
	// Forgets is whether a pod with a Problem deletes its items of the keys that move, and has completed ScalingClose then. Agents of release
	// 1.1.0 don't.
	Forgets bool `json:"forgets,omitempty"`
	// Error is a message for the user that says why the last attempt failed; another one follows.
	Error string `json:"error,omitempty"`
}
