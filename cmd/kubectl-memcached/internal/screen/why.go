package screen

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// Why is the screen of what the operator does next, and what blocks it. It has what the operator reports.
type Why struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	Sentence  string `json:"sentence"`
	// Next is what the operator does next.
	Next string `json:"next"`
	// Do is what you can do about it.
	Do         []string    `json:"do,omitempty"`
	Gates      []Gate      `json:"gates,omitempty"`
	Conditions []Condition `json:"conditions"`

	since string // how long the update has been at its gate
}

// Gate is one of what can block the update of the next shard.
type Gate struct {
	Name v1beta1.Gate `json:"name"`
	// Blocks is Yes or No, or Unknown if the operator hasn't checked it because an earlier one blocks.
	Blocks Blocks `json:"blocks"`
}

// Blocks is whether a gate blocks.
type Blocks string

// The values of Blocks.
const (
	GateBlocks     Blocks = "Yes"
	GateOpen       Blocks = "No"
	GateNotChecked Blocks = "Unknown"
)

// Condition is one of the status.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	Since   *metav1.Time           `json:"since,omitempty"`

	age string
}

// described are the conditions that say why; the others summarize them for tools.
var described = []string{v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionDegraded}

// NewWhy returns what the operator does next with a Memcached.
func NewWhy(in Input) Why {
	m := in.Memcached
	w := Why{Namespace: m.Namespace, Name: m.Name, State: stateOf(m), Sentence: sentence(m), Next: next(m), Conditions: make([]Condition, 0, len(described))}
	if u := m.Status.Update; u != nil && u.Gate != "" {
		w.Gates, w.since = gates(u.Gate), since(in.Now, &u.LastTransitionTime)
		w.do(string(u.Gate))
	}
	for _, t := range described {
		c := condition(m, t)
		if c.Type == "" {
			continue
		}
		shown := Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, age: since(in.Now, &c.LastTransitionTime)}
		if !c.LastTransitionTime.IsZero() {
			shown.Since = &c.LastTransitionTime
		}
		w.Conditions = append(w.Conditions, shown)
	}
	// The conditions that ask for less come last, and count if no other asks for something.
	for _, t := range []string{v1beta1.ConditionDegraded, v1beta1.ConditionProgressing, v1beta1.ConditionAvailable} {
		if c := condition(m, t); t == v1beta1.ConditionDegraded || len(w.Do) == 0 {
			w.do(c.Reason)
		}
	}
	return w
}

// do adds what the documents say to do about a reason.
func (w *Why) do(reason string) {
	action := actions()[reason]
	if action != "" && action != "Nothing." && !slices.Contains(w.Do, action) {
		w.Do = append(w.Do, action)
	}
}

// next says what the operator does next.
func next(m *v1beta1.Memcached) string {
	u := m.Status.Update
	switch {
	case m.Status.ObservedGeneration <= 0 || !isSeen(m):
		return "The operator reads the spec, when it runs and watches this namespace."
	case u != nil && u.Gate != "":
		return fmt.Sprintf("%s, when the gate %s doesn't block it any more: %s", change(u), u.Gate, u.Message)
	case u != nil:
		return fmt.Sprintf("%s, which no gate blocks: %s", change(u), u.Message)
	}
	if message := condition(m, v1beta1.ConditionProgressing).Message; message != "" {
		return message
	}
	return "Unknown: the status doesn't say it."
}

// change names what an update does to a shard.
func change(u *v1beta1.UpdateStatus) string {
	switch {
	case u.RollingBack:
		return "Rolling back shard " + u.Shard
	case u.Method != "":
		return fmt.Sprintf("Updating shard %s (%s)", u.Shard, u.Method)
	}
	return "Updating shard " + u.Shard
}

// gates returns all gates, of which the operator reports the first that blocks. Of one that this release doesn't know, the
// place isn't known either.
func gates(blocking v1beta1.Gate) []Gate {
	at := slices.Index(v1beta1.Gates, blocking)
	if at < 0 {
		return []Gate{{blocking, GateBlocks}}
	}
	all := make([]Gate, 0, len(v1beta1.Gates))
	for i, g := range v1beta1.Gates {
		blocks := GateBlocks
		if i < at {
			blocks = GateOpen
		} else if i > at {
			blocks = GateNotChecked
		}
		all = append(all, Gate{g, blocks})
	}
	return all
}

//go:embed reasons.json
var reasons []byte

// actions are what docs/troubleshooting.md says to do, by reason.
var actions = sync.OnceValue(func() (byReason map[string]string) {
	if err := json.Unmarshal(reasons, &byReason); err != nil {
		panic(err) // it is generated
	}
	return byReason
})

// Text returns the screen for a terminal.
func (w Why) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s is %s\n\nNext: %s\n", w.Namespace, w.Name, w.Sentence, w.Next)
	for _, action := range w.Do {
		fmt.Fprintf(&out, "Do: %s\n", action)
	}
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	if len(w.Gates) > 0 {
		fmt.Fprintln(tw, "\nGATE\tBLOCKS")
	}
	for _, g := range w.Gates {
		fmt.Fprintf(tw, "%s\t%s\n", g.Name, w.blocks(g))
	}
	_ = tw.Flush() // to a strings.Builder
	if len(w.Conditions) > 0 {
		fmt.Fprintln(tw, "\nCONDITION\tSTATUS\tREASON\tSINCE\tMESSAGE")
	}
	for _, c := range w.Conditions {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", c.Type, orDash(string(c.Status)), orDash(c.Reason), orDash(c.age), orDash(c.Message))
	}
	_ = tw.Flush() // to a strings.Builder
	return out.String()
}

func (w Why) blocks(g Gate) string {
	switch g.Blocks {
	case GateOpen:
		return "no"
	case GateBlocks:
		if w.since != "" {
			return "yes, for " + w.since
		}
		return "yes"
	case GateNotChecked:
	}
	return "not checked yet"
}
