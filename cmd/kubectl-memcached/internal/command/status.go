package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

// lookAgain is the pause between two looks of --watch.
const lookAgain = 2 * time.Second

// clear clears a terminal.
const clear = "\x1b[H\x1b[2J"

func (p *plugin) status() *cobra.Command {
	var (
		format     output
		watch, all bool
	)
	cmd := &cobra.Command{
		Use: "status [NAME]", Short: "Show a Memcached on one screen, or a line for each",
		Long: `Show a Memcached on one screen: its shards, what blocks it, what its last update cost, its last backup, and its certificate.
Without a name, show a line for each Memcached.

ITEMS, MEMORY (the used share) and HITS (the hit ratio of the last minute) come from the agents in the pods. They need the permission to
create pods/portforward, which the role edit includes. START is how memcached started last, and which share of its items it kept.`,
		Example: `  kubectl memcached status cache
  kubectl memcached status cache --watch
  kubectl memcached status -A
  kubectl memcached status cache -o json`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, key, err := p.oneOrAll(args, all)
			if err != nil {
				return err
			}
			return p.show(cmd.Context(), &format, watch, func(ctx context.Context) (shown, screen.State, error) { return statusScreen(ctx, c, key) })
		},
	}
	format.add(cmd)
	addWatch(cmd, &watch)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Show the Memcacheds of all namespaces")
	return cmd
}

// oneOrAll returns the key of the Memcached that is named, or one without a name: of all in the namespace, or in all namespaces.
func (p *plugin) oneOrAll(args []string, allNamespaces bool) (*cluster.Cluster, client.ObjectKey, error) {
	name := strings.Join(args, "") // at most one
	if len(args) == 1 && allNamespaces {
		return nil, client.ObjectKey{}, usageError{errors.New("a name and --all-namespaces exclude each other: name the namespace with --namespace")}
	}
	c, key, err := p.at(name)
	if allNamespaces {
		key.Namespace = metav1.NamespaceAll
	}
	return c, key, err
}

func addWatch(cmd *cobra.Command, watch *bool) {
	cmd.Flags().BoolVarP(watch, "watch", "w", false, "Look again every two seconds, and show what has changed, until you interrupt it")
}

// statusScreen returns the screen of a Memcached, or the list of all if the key has no name.
func statusScreen(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) (shown, screen.State, error) {
	if key.Name == "" {
		all, err := c.Memcacheds(ctx, key.Namespace)
		return screen.NewList(all, key.Namespace == metav1.NamespaceAll, c.Now()), screen.Ready, err
	}
	in, err := c.Observe(ctx, key, explain)
	if err != nil {
		return nil, "", err
	}
	s := screen.NewStatus(in)
	return s, s.State, nil
}

// show prints a screen, and again while it changes. Without watch, a Memcached that isn't ready is an error.
func (p *plugin) show(ctx context.Context, format *output, watch bool, look func(context.Context) (shown, screen.State, error)) error {
	before := ""
	for first := true; ; first = false {
		s, state, err := look(ctx)
		text := ""
		if err == nil {
			text, err = format.format(s)
		}
		_, isDenied := missingRight(err)
		switch {
		case ctx.Err() != nil && watch:
			return nil // interrupted
		case err != nil && (!watch || first || isDenied):
			return err
		case err != nil:
			fmt.Fprintf(p.streams.ErrOut, "Error: %s\n", explain(err))
		case text != before && isTerminal(p.streams.Out) && watch:
			fmt.Fprint(p.streams.Out, clear, text)
		case text != before:
			if !first {
				fmt.Fprintln(p.streams.Out)
			}
			fmt.Fprint(p.streams.Out, text)
		}
		if !watch {
			if state != screen.Ready {
				return stateError{state}
			}
			return nil
		}
		before = text // empty after an error, which the next screen replaces
		if !p.pause(ctx, lookAgain) {
			return nil
		}
	}
}
