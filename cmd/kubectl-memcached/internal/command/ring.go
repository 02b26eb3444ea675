package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring/evidence"
)

func (p *plugin) ring() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use: "ring NAME", Short: "Say by which ring and names of the servers clients choose a shard",
		Long: `Say by which ring, and over which names of the servers, the clients of a Memcached choose the shard of a key. It compares where at most 2,000 keys of each
shard, and 16,000 of all, are with where clients would look for them, and prints no keys. FOUND is the share that is where these clients look for it,
and PLACED estimates the share that isn't there by chance. The exit code is 3 if that is unclear, or if two groups of clients disagree.

It needs the permission to create pods/exec, which the role edit includes, and release 1.1.0 of the operator or newer.`,
		Example: "  kubectl memcached ring cache\n  kubectl memcached ring cache -o json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch n, servers := len(m.Status.Shards), len(m.Status.Servers); {
			case servers < 2:
				return fmt.Errorf("clients of %s need no ring: status.servers has fewer than two servers", m.Name)
			case n != servers:
				return fmt.Errorf("%s has %d shards, and %d servers in status.servers: try again when the change of spec.size is complete", m.Name, n, servers)
			}
			keys, err := c.Sample(cmd.Context(), m)
			if err != nil && isEmpty(keys) {
				return err
			}
			spellings, omitted := c.Spellings(cmd.Context(), m, explain)
			if err != nil {
				omitted = append(omitted, "the keys of all shards: "+explain(err))
			}
			fmt.Fprintf(p.progress, "Comparing the keys with %d spellings of the servers\n", len(spellings))
			answer, err := evidence.Find(cmd.Context(), keys, spellings)
			if err != nil {
				return err
			}
			r := screen.NewRing(m, c.Flags, answer, spellings, omitted)
			text, err := format.format(r)
			if err != nil {
				return err
			}
			fmt.Fprint(p.streams.Out, text)
			if r.State() != screen.Ready {
				return stateError{r.State()}
			}
			return nil
		},
	}
	format.add(cmd)
	return cmd
}

func isEmpty(keys [][][]byte) bool {
	for _, of := range keys {
		if len(of) > 0 {
			return false
		}
	}
	return true
}
