package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

func (p *plugin) size() *cobra.Command {
	var format output
	cmd := &cobra.Command{
		Use: "size NAME", Short: "Show how much memory a Memcached needs, and why",
		Long: `Show the memory that the agents recommend for the shards of a Memcached, why, and the command that sets it.

Each shard has spec.memory, so the shard that needs most decides. The recommendation comes from the metrics of the agents, which needs the
permission to create pods/portforward. The role edit includes it.`,
		Example: "  kubectl memcached size cache\n  kubectl memcached size cache -o json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, key, err := p.at(args[0])
			if err != nil {
				return err
			}
			in, err := c.Sizes(cmd.Context(), key, explain)
			if err != nil {
				return err
			}
			text, err := format.format(screen.NewSize(in))
			fmt.Fprint(p.streams.Out, text)
			return err
		},
	}
	format.add(cmd)
	return cmd
}
