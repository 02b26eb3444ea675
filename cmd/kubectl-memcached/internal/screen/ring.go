package screen

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring/evidence"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

// Ring says which ring and names of the servers the clients of a Memcached use.
type Ring struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Clients is what is known of them.
	Clients Clients `json:"clients"`
	evidence.Answer
	// Do is what you can do about it.
	Do []string `json:"do,omitempty"`
	// Omitted says what couldn't be read, and why.
	Omitted []string `json:"omitted,omitempty"`

	shards    int
	spellings []evidence.Spelling
}

// Clients is what is known of the clients.
type Clients string

// The values of Clients.
const (
	ClientsAgree    Clients = "Agree"
	ClientsDisagree Clients = "Disagree"
	ClientsUnclear  Clients = "Unclear"
)

// NewRing returns the screen of what the keys of a Memcached show. Flags select the cluster and the namespace in commands.
func NewRing(m *v1beta1.Memcached, flags string, answer evidence.Answer, spellings []evidence.Spelling, omitted []string) Ring {
	r := Ring{Namespace: m.Namespace, Name: m.Name, Answer: answer, Omitted: omitted, shards: len(m.Status.Shards), spellings: spellings}
	switch len(r.Groups) {
	case 0:
		r.Clients = ClientsUnclear
		r.Do = append(r.Do, "Compare the list of servers of your clients with status.servers. No ring is found if there are few keys, if clients use another hash or weights, or if they "+
			"add a prefix to a key after they have chosen its server.")
	case 1:
		r.Clients = ClientsAgree
		r.compare(m, flags)
	default:
		r.Clients = ClientsDisagree
		r.Do = append(r.Do, "Give all clients the same ring and the same names, those in status.servers.")
	}
	for _, g := range r.Groups {
		if strings.HasPrefix(g.Spellings[0], "addresses of the pods") {
			r.Do = append(r.Do, "Don't use the addresses of pods: keys move when another pod replaces one. Use the names in status.servers.")
		}
	}
	return r
}

// compare compares what the clients use with the spec.
func (r *Ring) compare(m *v1beta1.Memcached, flags string) {
	g, h := r.Groups[0], m.Spec.Access.Hashing
	declared := evidence.StatusServers
	if h != nil && h.ServerNameTemplate != "" {
		declared = h.ServerNameTemplate
	}
	says := "says nothing"
	if h != nil {
		says = fmt.Sprintf("says %s over %s", h.Algorithm, declared)
	}
	switch {
	case h == nil || string(h.Algorithm) != g.Ring || !slices.Contains(g.Spellings, declared):
		r.Do = append(r.Do, fmt.Sprintf("Set spec.access.hashing, which %s, to algorithm: %s%s. Changes of spec.size, and restores into another number of shards, use it.", says, g.Ring, r.names(g, declared)))
	case g.Found < 1:
		r.Do = append(r.Do, fmt.Sprintf("Run \"kubectl memcached purge %s %s\", which counts the items that clients look for on other shards: those that an earlier change of spec.size has left.", m.Name, flags))
	}
}

// names returns what else spec.access.hashing has to be for the names of the servers that clients use.
func (r *Ring) names(g evidence.Group, declared string) string {
	switch {
	case slices.Contains(g.Spellings, declared):
		return ""
	case slices.Contains(g.Spellings, evidence.StatusServers):
		return ", without serverNameTemplate"
	}
	for _, s := range r.spellings {
		if s.Template != "" && slices.Contains(g.Spellings, s.Name) {
			return fmt.Sprintf(" and serverNameTemplate: %q", s.Template)
		}
	}
	return ", and give the clients the names in status.servers, since no serverNameTemplate says those that they use"
}

// State is Ready if the clients agree.
func (r Ring) State() State {
	if r.Clients == ClientsAgree {
		return Ready
	}
	return NotReady
}

// Text returns the screen for a terminal.
func (r Ring) Text() string {
	var out strings.Builder
	switch r.Clients {
	case ClientsAgree:
		fmt.Fprintf(&out, "%s/%s: the clients use %s\n", r.Namespace, r.Name, r.Groups[0].Ring)
	case ClientsDisagree:
		fmt.Fprintf(&out, "%s/%s: two groups of clients look for the same key on different shards\n", r.Namespace, r.Name)
	case ClientsUnclear:
		fmt.Fprintf(&out, "%s/%s: it is unclear which ring the clients use\n", r.Namespace, r.Name)
	}
	fmt.Fprintf(&out, "%s of %s were compared with %d rings over %d spellings of the servers\n", count(int64(r.Keys), "key"), count(int64(r.shards), "shard"),
		len(evidence.Rings), len(r.spellings))
	tw := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	if len(r.Groups) > 0 {
		fmt.Fprintln(tw, "\nRING\tSERVERS\tFIRST SERVER\tFOUND\tPLACED")
	}
	for _, g := range r.Groups {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", g.Ring, spelled(g.Spellings), r.example(g), r.percent(g.Found), r.percent(g.Placed))
	}
	_ = tw.Flush() // to a strings.Builder
	if len(r.Do)+len(r.Omitted) > 0 {
		fmt.Fprintln(&out)
	}
	for _, action := range r.Do {
		fmt.Fprintf(&out, "Do: %s\n", action)
	}
	for _, o := range r.Omitted {
		fmt.Fprintf(&out, "Not compared: %s\n", o)
	}
	return out.String()
}

// spelled names spellings that place all keys in the same way.
func spelled(all []string) string {
	if len(all) > 2 {
		return fmt.Sprintf("%s or %d others", all[0], len(all)-1)
	}
	return strings.Join(all, " or ")
}

func (r Ring) percent(share float64) string {
	return text.Percent(int64(share*float64(r.Keys)+0.5), int64(r.Keys))
}

func (r Ring) example(g evidence.Group) string {
	i := slices.IndexFunc(r.spellings, func(s evidence.Spelling) bool { return s.Name == g.Spellings[0] })
	return r.spellings[i].Servers[0]
}
