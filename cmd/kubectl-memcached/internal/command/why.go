package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

func (p *plugin) why() *cobra.Command {
	var (
		format output
		watch  bool
	)
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Say what the operator does next with a Memcached, and what blocks it",
		Long: `Say what the operator does next with a Memcached, which gates block it, and what to do about it.

It is the answer of the operator, which reports the first gate that blocks in the status. It doesn't check the gates after that one
until that one is open.`,
		Example: "  kubectl memcached why cache\n  kubectl memcached why cache -o json",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, key, err := p.at(args[0])
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), &format, watch, func(ctx context.Context) (shown, screen.State, error) {
				m, err := c.Memcached(ctx, key)
				if err != nil {
					return nil, "", err
				}
				w := screen.NewWhy(screen.Input{Memcached: m, Flags: c.Flags, Now: c.Now()})
				return w, w.State, nil
			})
		},
	}
	format.add(cmd)
	addWatch(cmd, &watch)
	return cmd
}
