package screen

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Status is the screen of one Memcached.
type Status struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	Sentence  string `json:"sentence"`
	Version   string `json:"version,omitempty"`
	// TargetVersion is the version of memcached that the spec leads to, if that is another one.
	TargetVersion string  `json:"targetVersion,omitempty"`
	Memory        string  `json:"memory,omitempty"`
	Shards        []Shard `json:"shards"`
	// Update is the operator's message about an update.
	Update    string    `json:"update,omitempty"`
	BlockedBy []Blocker `json:"blockedBy,omitempty"`
	// LastUpdate is what the last update cost.
	LastUpdate *v1beta1.UpdateCost `json:"lastUpdate,omitempty"`
	// LastScaling is what the last change of the number of shards was.
	LastScaling *v1beta1.ScalingStatus `json:"lastScaling,omitempty"`
	LastBackup  *Backup                `json:"lastBackup,omitempty"`
	Certificate *v1beta1.TLSStatus     `json:"certificate,omitempty"`
	// Recommendation is the memory that a shard needs, if it is another one.
	Recommendation string `json:"recommendation,omitempty"`
	// Omitted says in sentences what couldn't be read, and why.
	Omitted []string `json:"omitted,omitempty"`

	now time.Time
}

// Shard is one shard.
type Shard struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Pod     string `json:"pod,omitempty"`
	Node    string `json:"node,omitempty"`
	Version string `json:"version,omitempty"`
	// What the agent answered is nil if it wasn't read. RecentHits of RecentGets lookups in the last minute found their key.
	Items      *int64       `json:"items,omitempty"`
	Bytes      *int64       `json:"bytes,omitempty"`
	MaxBytes   *int64       `json:"maxBytes,omitempty"`
	RecentGets *int64       `json:"recentGets,omitempty"`
	RecentHits *int64       `json:"recentHits,omitempty"`
	StartTime  *metav1.Time `json:"startTime,omitempty"`
	// Start is how memcached started last, with ItemsAfterStart of ItemsBefore.
	Start           v1beta1.StartResult `json:"start,omitempty"`
	ItemsAfterStart int64               `json:"itemsAfterStart,omitempty"`
	ItemsBefore     int64               `json:"itemsBefore,omitempty"`
	Message         string              `json:"message,omitempty"`

	start string
}

// Blocker is what prevents something from happening now.
type Blocker struct {
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Backup is a MemcachedBackup.
type Backup struct {
	Name           string       `json:"name"`
	Phase          string       `json:"phase,omitempty"`
	Message        string       `json:"message,omitempty"`
	CreationTime   metav1.Time  `json:"creationTime"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	Items          int64        `json:"items,omitempty"`
}

// NewStatus returns the screen of a Memcached.
func NewStatus(in Input) Status {
	m := in.Memcached
	s := Status{
		Namespace: m.Namespace, Name: m.Name, State: stateOf(m), Sentence: sentence(m), Version: m.Status.Version, TargetVersion: m.Status.TargetVersion,
		Shards: make([]Shard, 0, len(m.Status.Shards)), BlockedBy: blockers(m), LastUpdate: m.Status.LastUpdate, LastScaling: m.Status.LastScaling, LastBackup: lastBackup(in.Backups),
		Certificate: m.Status.TLS, Recommendation: recommendation(in), Omitted: in.Omitted, now: in.Now,
	}
	if m.Spec.Memory != nil {
		s.Memory = m.Spec.Memory.String()
	}
	if u := m.Status.Update; u != nil && u.Gate == "" {
		s.Update = u.Message
	}
	for _, shard := range m.Status.Shards {
		s.Shards = append(s.Shards, newShard(shard, in))
	}
	return s
}

func newShard(s v1beta1.ShardStatus, in Input) Shard {
	result := Shard{
		Name: s.Name, Ready: s.Ready, Pod: s.PodName, Node: s.NodeName, Version: s.Version, StartTime: s.StartTime, Start: s.StartResult,
		ItemsAfterStart: s.Items, ItemsBefore: s.ItemsBefore, Message: s.Message, start: Start(s),
	}
	if a, ok := in.Agents[s.PodName]; ok && s.PodName != "" {
		result.Items, result.Bytes, result.MaxBytes = &a.Items, &a.Bytes, &a.MaxBytes
		result.RecentGets, result.RecentHits = &a.RecentGets, &a.RecentHits
	}
	return result
}

// blockers returns what prevents the Memcached from being as its spec says, as the operator reports it.
func blockers(m *v1beta1.Memcached) []Blocker {
	var all []Blocker
	add := func(reason, message string) {
		for _, b := range all {
			if b.Reason == reason {
				return
			}
		}
		all = append(all, Blocker{reason, message})
	}
	if c := condition(m, v1beta1.ConditionDegraded); c.Status == metav1.ConditionTrue {
		add(c.Reason, c.Message)
	}
	if u := m.Status.Update; u != nil && u.Gate != "" {
		add(string(u.Gate), u.Message)
	}
	if m.Spec.Paused {
		add(v1beta1.ReasonPaused, "nothing changes until spec.paused is false")
	}
	if l := m.Status.LimitedSize; l != nil {
		add("Scale", l.Message)
	}
	if e := m.Status.External; e != nil && e.Message != "" {
		add("External", e.Message)
	}
	if b := m.Status.Binding; b != nil && b.Message != "" {
		add("Binding", b.Message)
	}
	return all
}

// lastBackup returns the one that was created last; nil if there is none.
func lastBackup(all []v1beta1.MemcachedBackup) *Backup {
	var last *v1beta1.MemcachedBackup
	for i := range all {
		if b := &all[i]; last == nil || last.CreationTimestamp.Before(&b.CreationTimestamp) {
			last = b
		}
	}
	if last == nil {
		return nil
	}
	b := &Backup{Name: last.Name, Phase: string(last.Status.Phase), Message: last.Status.Message(), CreationTime: last.CreationTimestamp, CompletionTime: last.Status.CompletionTime}
	if last.Status.Snapshot != nil {
		b.Items = last.Status.Snapshot.Items
	}
	return b
}

// Text returns the screen for a terminal.
func (s Status) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s is %s\n", s.Namespace, s.Name, s.Sentence)
	var facts []string
	if s.Version != "" {
		facts = append(facts, "memcached "+s.Version)
	}
	if s.TargetVersion != "" {
		facts = append(facts, s.TargetVersion+" follows")
	}
	if s.Memory != "" {
		facts = append(facts, s.Memory+" a shard")
	}
	if len(facts) > 0 {
		fmt.Fprintln(&out, strings.Join(facts, ", "))
	}
	if len(s.Shards) > 0 {
		out.WriteString("\n" + s.table())
	}
	out.WriteString(s.facts())
	return out.String()
}

// table returns a line for each shard, and the messages of shards below it.
func (s Status) table() string {
	var out strings.Builder
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SHARD\tREADY\tPOD\tNODE\tVERSION\tITEMS\tMEMORY\tHITS\tAGE\tSTART")
	for _, shard := range s.Shards {
		fmt.Fprintln(tw, strings.Join([]string{shard.Name, yesNo(shard.Ready), orDash(shard.Pod), orDash(shard.Node), orDash(shard.Version), orDash(number(shard.Items)),
			orDash(share(shard.Bytes, shard.MaxBytes)), orDash(share(shard.RecentHits, shard.RecentGets)), orDash(since(s.now, shard.StartTime)), orDash(shard.start)}, "\t"))
	}
	_ = tw.Flush() // to a strings.Builder
	for _, shard := range s.Shards {
		if shard.Message != "" {
			fmt.Fprintf(&out, "%s: %s\n", shard.Name, shard.Message)
		}
	}
	return out.String()
}

// Start says how memcached of a shard started last, and with which share of its items.
func Start(s v1beta1.ShardStatus) string {
	if s.ItemsBefore > 0 && (s.StartResult == v1beta1.StartWarm || s.StartResult == v1beta1.StartHandedOver) {
		return fmt.Sprintf("%s, kept %s", s.StartResult, text.Percent(s.Items, s.ItemsBefore))
	}
	return string(s.StartResult)
}

// facts returns the lines below the table.
func (s Status) facts() string {
	var out strings.Builder
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(title, value string) { fmt.Fprintf(tw, "%s\t%s\n", title, value) }
	if !strings.Contains(s.Sentence, s.Update) {
		line("Update", s.Update)
	}
	for _, b := range s.BlockedBy {
		if strings.Contains(s.Sentence, b.Message) {
			continue
		}
		line("Blocked by", b.Reason+": "+b.Message)
	}
	if u := s.LastUpdate; u != nil {
		line("Last update", bill(*u, s.now))
	}
	if l := s.LastScaling; l != nil && l.CompletionTime != nil {
		line("Last scaling", scaling(*l, s.now))
	}
	if b := s.LastBackup; b != nil {
		line("Last backup", b.text(s.now))
	}
	if c := s.Certificate; c != nil && c.NotAfter != nil {
		line("Certificate", certificate(*c, s.now))
	}
	if s.Recommendation != "" {
		line("Memory", s.Recommendation)
	}
	for _, o := range s.Omitted {
		line("Not shown", o)
	}
	_ = tw.Flush() // to a strings.Builder
	if out.Len() == 0 {
		return ""
	}
	return "\n" + out.String()
}

// bill says what an update cost.
func bill(u v1beta1.UpdateCost, now time.Time) string {
	parts := []string{fmt.Sprintf("began %s ago", cmp.Or(since(now, &u.StartTime), "0s"))}
	if u.CompletionTime != nil {
		parts[0] = fmt.Sprintf("finished %s ago, after %s", since(now, u.CompletionTime), duration.HumanDuration(u.CompletionTime.Sub(u.StartTime.Time)))
	}
	parts = append(parts, count(int64(u.Shards), "shard"))
	if u.ItemsBefore > 0 {
		parts = append(parts, fmt.Sprintf("kept %s of %s", text.Percent(u.Items, u.ItemsBefore), count(u.ItemsBefore, "item")))
	}
	parts = append(parts, fmt.Sprintf("unavailable for %s, at most %s a shard", milliseconds(u.UnavailableMilliseconds), milliseconds(u.MaxUnavailableMilliseconds)))
	if u.ExtraMisses != nil {
		parts = append(parts, fmt.Sprintf("%s more misses", text.Thousands(*u.ExtraMisses)))
	}
	return strings.Join(parts, "; ")
}

// scaling says what a change of the number of shards was.
func scaling(s v1beta1.ScalingStatus, now time.Time) string {
	result := fmt.Sprintf("finished %s ago, after %s; from %d to %d shards", since(now, s.CompletionTime), duration.HumanDuration(s.CompletionTime.Sub(s.StartTime.Time)), s.From, s.To)
	if s.PublishTime != nil {
		result += fmt.Sprintf("; copied %s in %s", count(s.Moved, "item"), duration.HumanDuration(s.PublishTime.Sub(s.StartTime.Time)))
		result += fmt.Sprintf("; values were out of date for %s at most; deleted %s, and purged %s", milliseconds(s.StaleMilliseconds), count(s.Deleted, "item"), count(s.Purged, "item"))
	}
	if s.Problem != "" {
		result += "; keys that moved were misses: " + s.Problem
	}
	return result
}

func (b Backup) text(now time.Time) string {
	result := fmt.Sprintf("%s is %s", b.Name, cmp.Or(b.Phase, "not started"))
	switch {
	case b.CompletionTime != nil && b.Phase == string(v1beta1.TransferComplete):
		return fmt.Sprintf("%s since %s; %s", result, since(now, b.CompletionTime), count(b.Items, "item"))
	case b.Message != "":
		return fmt.Sprintf("%s, created %s ago: %s", result, since(now, &b.CreationTime), b.Message)
	}
	return fmt.Sprintf("%s, created %s ago", result, since(now, &b.CreationTime))
}

func certificate(c v1beta1.TLSStatus, now time.Time) string {
	result := "expires in " + duration.HumanDuration(c.NotAfter.Sub(now))
	if !now.Before(c.NotAfter.Time) {
		result = "expired " + since(now, c.NotAfter) + " ago"
	}
	result += ", at " + c.NotAfter.UTC().Format(time.RFC3339)
	if n := ptr.Deref(c.PlainConnections, 0); n > 0 {
		result += fmt.Sprintf("; %s without TLS", count(n, "connection"))
	}
	return result
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orDash(text string) string { return cmp.Or(text, "-") }

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return text.Thousands(*n)
}

// share returns a share in percent; empty if it isn't known, or of nothing.
func share(part, of *int64) string {
	if part == nil || of == nil || *of <= 0 {
		return ""
	}
	return text.Percent(*part, *of)
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return text.Thousands(n) + " " + what + "s"
}

func milliseconds(n int64) string { return text.Thousands(n) + " ms" }
