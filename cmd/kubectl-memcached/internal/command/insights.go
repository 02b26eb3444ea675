package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
)

const (
	// watchReads is how long the agent watches by default, and maxWatchReads how long at most.
	watchReads, maxWatchReads = 5 * time.Second, 30 * time.Second
	// answerTime is how long an agent may take beside that.
	answerTime = 15 * time.Second
)

func (p *plugin) hotkeys() *cobra.Command {
	watch := watchReads
	cmd := &cobra.Command{
		Use: "hotkeys NAME [SHARD...]", Short: "Show the keys that clients read most",
		Long: `Show the keys of shards that clients read most. Without a shard, show those of all shards, one after the other.

While it watches, memcached logs each read, which slows a busy shard. It needs a free connection, and the permission to create pods/exec,
which the role edit includes. By hand, you run "/opt/agent/agent hotkeys" in the shard's pod.`,
		Example: "  kubectl memcached hotkeys cache 0 --for 10s",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: p.completeShards,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.ask(cmd.Context(), args, watch+answerTime, "hotkeys", "-for", watch.String())
		},
	}
	addDuration(cmd, &watch, "for", time.Second, maxWatchReads, "How long to watch, at most 30s. It stops after 100,000 reads")
	return cmd
}

func (p *plugin) clients() *cobra.Command {
	return &cobra.Command{
		Use: "clients NAME [SHARD...]", Short: "Show which clients have how many connections",
		Long: `Show which clients have how many connections to shards. Without a shard, show those of all shards, one after the other.

It needs the permission to create pods/exec, which the role edit includes. By hand, you run "/opt/agent/agent connections" in the shard's pod.`,
		Example: "  kubectl memcached clients cache\n  kubectl memcached clients cache 0",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: p.completeShards,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.ask(cmd.Context(), args, answerTime, "connections")
		},
	}
}

// ask runs a command of the agents of shards, and prints the answers. An agent that can't answer doesn't prevent the others.
func (p *plugin) ask(ctx context.Context, args []string, timeout time.Duration, command ...string) error {
	c, m, err := p.find(ctx, args[0])
	if err != nil {
		return err
	}
	names := args[1:]
	if len(names) == 0 {
		names = namesOf(m)
	}
	var failed error
	for i, name := range names {
		if i > 0 {
			fmt.Fprintln(p.streams.Out)
		}
		s, err := shardOf(c, m, name)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(p.progress, "Querying %s\n", s.Name)
		var answer bytes.Buffer
		err = c.Agent(ctx, timeout, m.Namespace, s.PodName, &answer, command...)
		if _, isDenied := missingRight(err); isDenied {
			return err
		} else if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(p.streams.Out, "%s:\n%s", s.Name, printers.EscapeTerminal(answer.String()))
	}
	return failed
}
