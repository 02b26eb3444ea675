package screen

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// List has a line for each Memcached.
type List struct {
	Memcacheds []Line `json:"memcacheds"`

	namespaces bool
}

// Line is a Memcached in a list.
type Line struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	Sentence  string `json:"sentence"`
	Version   string `json:"version,omitempty"`
	Shards    int32  `json:"shards"`
	Ready     int32  `json:"ready"`
	Updated   int32  `json:"updated"`

	age string
}

// NewList returns the list of Memcacheds, with their namespaces if they have several.
func NewList(all []v1beta1.Memcached, namespaces bool, now time.Time) List {
	l := List{Memcacheds: make([]Line, 0, len(all)), namespaces: namespaces}
	for i := range all {
		m := &all[i]
		l.Memcacheds = append(l.Memcacheds, Line{Namespace: m.Namespace, Name: m.Name, State: stateOf(m), Sentence: sentence(m), Version: m.Status.Version,
			Shards: m.Status.Size, Ready: m.Status.ReadyShards, Updated: m.Status.UpdatedShards, age: since(now, &m.CreationTimestamp)})
	}
	return l
}

// Text returns the list for a terminal.
func (l List) Text() string {
	if len(l.Memcacheds) == 0 {
		return "There is no Memcached.\n"
	}
	var out strings.Builder
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		if !l.namespaces {
			cells = cells[1:]
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	row("NAMESPACE", "NAME", "VERSION", "SHARDS", "READY", "UPDATED", "AGE", "STATUS")
	for _, m := range l.Memcacheds {
		row(m.Namespace, m.Name, orDash(m.Version), fmt.Sprint(m.Shards), fmt.Sprint(m.Ready), fmt.Sprint(m.Updated), orDash(m.age), m.Sentence)
	}
	_ = tw.Flush() // to a strings.Builder
	return out.String()
}
