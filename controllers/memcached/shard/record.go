package shard

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/rollout"
	agentwire "github.com/memcached-operator/memcached-operator/internal/agent/wire"
	"github.com/memcached-operator/memcached-operator/internal/annotations"
	"github.com/memcached-operator/memcached-operator/internal/serverclock"
)

// AnnounceRetry is how long an agent may take to read an announcement, and the first wait before an update is
// repeated: the kubelet projects a change within a second, but can miss it until the pod changes again.
const AnnounceRetry = 5 * time.Second

// UpdateRecord is what the operator records on a shard when it updates it.
type UpdateRecord struct {
	// Revision that the update leads to, and the one that it leads from.
	Revision string         `json:"revision"`
	From     string         `json:"from,omitempty"`
	At       time.Time      `json:"at"`
	Method   rollout.Method `json:"method"`
	// Container that ran before.
	Container string `json:"container,omitempty"`
	// Image that the pod had before an update in place, if it differs from that of its revision.
	Image string `json:"image,omitempty"`
	// Rewritten is whether the shard is replaced because only a new pod gets the image that was checked.
	Rewritten bool `json:"rewritten,omitempty"`
	// KeepsItems is whether the update fails if the shard starts without its items in another pod.
	KeepsItems bool `json:"keepsItems,omitempty"`
	// MovedPod is the pod that is replaced by one on another node; empty for none.
	MovedPod string `json:"movedPod,omitempty"`
	// Restart is the value of the restart annotation with which memcached restarts for a certificate; empty for
	// another update. Attempt is the RetryToken of that restart.
	Restart string `json:"restart,omitempty"`
	Attempt string `json:"attempt,omitempty"`
	// Items that the shard contained, and Gets and Hits of the minute before.
	Items int64 `json:"items,omitempty"`
	Gets  int64 `json:"gets,omitempty"`
	Hits  int64 `json:"hits,omitempty"`
	// Repeated is when the record was written again; see Repeat. nil if it wasn't.
	Repeated *time.Time `json:"repeated,omitempty"`
}

// FailureRecord is what the operator records on a shard whose update failed.
type FailureRecord struct {
	Revision string `json:"revision"`
	// Attempt is the RetryToken of the failed update. The operator retries under another one.
	Attempt string `json:"attempt,omitempty"`
	// Restart is UpdateRecord.Restart, if that restart lost the items; empty if another update failed.
	Restart string `json:"restart,omitempty"`
	Message string `json:"message"`
}

// NewFailureRecord returns the record of an update that failed now.
func (s *State) NewFailureRecord(message string) FailureRecord {
	r := FailureRecord{Revision: s.Target.Revision.Hash(), Attempt: s.Attempt, Message: message}
	if pod := s.Rollout.Pod; pod.Outcome == rollout.Cold && pod.Revision == s.Rollout.Template {
		r.Restart = s.Record.Restart
	}
	return r
}

// EncodeRecord returns a record as an annotation's value.
func EncodeRecord(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // records contain plain values only
		panic(err)
	}
	return string(raw)
}

// DecodeRecord returns the record in an annotation, or nil.
func DecodeRecord[T any](from map[string]string, name string) *T {
	text, ok := from[name]
	v := new(T)
	if !ok || json.Unmarshal([]byte(text), v) != nil {
		return nil
	}
	return v
}

// decodeUpdate returns the record of the last update, or nil. Users can change it.
func decodeUpdate(from map[string]string) *UpdateRecord {
	r := DecodeRecord[UpdateRecord](from, annotations.Update)
	if r != nil {
		r.Items, r.Gets, r.Hits = bounded(r.Items, maxCount), bounded(r.Gets, maxCount), bounded(r.Hits, maxCount)
	}
	return r
}

// RetryToken identifies an attempt to update a Memcached. A failed update is retried when
// it changes.
func RetryToken(m *v1beta1.Memcached) string {
	token := m.Annotations[v1beta1.AnnotationRetry]
	if m.Spec.UpdateStrategy.OnItemLoss == v1beta1.ItemLossContinue {
		token += "/" + string(v1beta1.ItemLossContinue)
	}
	return token
}

// StopToken returns the announcement of the next stop of the pod's container for an update
// to a revision: the current announcement if it is recent, or a new one. An announcement
// is valid for one container.
func (s *State) StopToken(to resources.PodRevision, now time.Time) string {
	if s.announced(to, now, AnnounceRetry) {
		return s.Active.Annotations[annotations.Stop]
	}
	return agentwire.AnnounceArguments(s.stopPrefix()+to.Hash()+"-"+strconv.FormatInt(now.Unix(), 10), to.ArgumentsText)
}

// announced reports whether the next stop of the pod's container, for an update to a revision, was announced less than a time ago.
func (o *Observation) announced(to resources.PodRevision, now time.Time, ago time.Duration) bool {
	rest, ok := strings.CutPrefix(o.Active.Annotations[annotations.Stop], o.stopPrefix()+to.Hash()+"-")
	second, _, _ := strings.Cut(rest, "/")
	at, err := strconv.ParseInt(second, 10, 64)
	return ok && err == nil && serverclock.Age(now, time.Unix(at, 0)) < ago
}

// NewUpdateRecord returns the record of an update that starts now.
func (s *State) NewUpdateRecord(to resources.PodRevision, method rollout.Method, now time.Time) UpdateRecord {
	r := UpdateRecord{Revision: to.Hash(), From: s.PodRevision.Hash(), At: now.UTC(), Method: method, Container: s.ContainerID}
	if s.Agent != nil {
		r.Items, r.Gets, r.Hits = s.Agent.Items, s.Agent.RecentGets, s.Agent.RecentHits
	}
	return r
}

// ImageFor returns the image that the active pod gets with a revision: when it goes back to the revision that it had before its
// last update, the image that it had then, which admission may have changed.
func (o *Observation) ImageFor(to resources.PodRevision) string {
	if o.OnPod != nil && o.OnPod.Revision == o.PodRevision.Hash() && o.OnPod.From == to.Hash() {
		return cmp.Or(o.OnPod.Image, to.Image.Reference)
	}
	return to.Image.Reference
}

// Repeat returns the record of an update in place to write again, or nil, and the time until the next one is due; 0 if none
// will be. The kubelet can miss an update until the pod changes again or until it syncs the pod, after at most 90 seconds. A
// record is repeated 5, 10, 20, 40 and 80 seconds after the update while its result is pending.
func (s *State) Repeat(now time.Time) (*UpdateRecord, time.Duration) {
	const last = 80 * time.Second
	pod := s.Rollout.Pod
	if s.OnPod == nil || s.Record != s.OnPod || s.OnPod.Method <= rollout.Live || pod.State != rollout.Serving || pod.Outcome != rollout.Pending {
		return nil, 0
	}
	due := AnnounceRetry
	if s.OnPod.Repeated != nil {
		due = max(due, 2*s.OnPod.Repeated.Sub(s.OnPod.At))
	}
	switch since := now.Sub(s.OnPod.At); {
	case due > last || since > 2*last:
		return nil, 0
	case since < due:
		return nil, due - since
	}
	r, at := *s.OnPod, now.UTC()
	r.Repeated = &at
	return &r, 0
}

// stopAnnounced reports whether a stop is announced to the pod's container, or its agent takes the announcement to a former one for that,
// as agents of release 1.0.0 do for a minute.
func (o *Observation) stopAnnounced(agent *agentwire.Status) bool {
	stop := o.Active.Annotations[annotations.Stop]
	return strings.HasPrefix(stop, o.stopPrefix()) || stop != "" && agent != nil && agent.AnnouncedStop == stop
}

// stopPrefix begins each announcement of a stop of the active pod's current container.
func (o *Observation) stopPrefix() string {
	return o.ContainerID + "-"
}
