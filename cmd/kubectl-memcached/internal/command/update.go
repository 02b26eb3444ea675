package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
)

func (p *plugin) pauseVerb() *cobra.Command {
	return p.change("pause NAME", "Stop the operator from changing anything that belongs to a Memcached",
		"Set spec.paused to true. The shards keep serving. A GitOps tool that owns the field reverts it.",
		"%s is paused: \"kubectl memcached resume %[1]s %[2]s\" continues\n",
		func(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) error {
			return c.Pause(ctx, key, true)
		})
}

func (p *plugin) resume() *cobra.Command {
	return p.change("resume NAME", "Let the operator change a paused Memcached again",
		"Set spec.paused to false. A GitOps tool that owns the field reverts it.",
		"%s isn't paused: \"kubectl memcached why %[1]s %[2]s\" says what the operator does next\n",
		func(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) error {
			return c.Pause(ctx, key, false)
		})
}

func (p *plugin) retry() *cobra.Command {
	return p.change("retry NAME", "Retry the update of a Memcached that failed",
		"Retry an update after you have fixed the cause.\n\nBy hand, you set the annotation "+v1beta1.AnnotationRetry+" to another value.",
		"The operator retries a failed update of %s: \"kubectl memcached why %[1]s %[2]s\" shows the progress\n",
		func(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) error {
			return c.AnnotateMemcached(ctx, key, v1beta1.AnnotationRetry, stamp(c.Now()))
		})
}

func (p *plugin) scaled() *cobra.Command {
	return p.change("scaled NAME", "Say that all clients use the new list of servers",
		"Let the operator complete a change of spec.size. Until then, it keeps the items equal that clients of the former list and of the new one "+
			"look for on different shards. Clients that still have the former list read old values afterwards.\n\n"+
			"By hand, you set the annotation "+v1beta1.AnnotationScaled+" to status.scaling.id.",
		"The operator completes the scaling of %s: \"kubectl memcached why %[1]s %[2]s\" shows the progress\n",
		func(ctx context.Context, c *cluster.Cluster, key client.ObjectKey) error {
			m, err := c.Memcached(ctx, key)
			if err != nil {
				return err
			}
			if s := m.Status.Scaling; s == nil || s.Step != v1beta1.ScalingWaiting {
				return fmt.Errorf("%s doesn't wait for its clients: use this verb when status.scaling.step is %s", key.Name, v1beta1.ScalingWaiting)
			}
			return c.AnnotateMemcached(ctx, key, v1beta1.AnnotationScaled, m.Status.Scaling.ID)
		})
}

// change is a verb that changes a Memcached.
func (p *plugin) change(use, short, long, done string, do func(context.Context, *cluster.Cluster, client.ObjectKey) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, key, err := p.at(args[0])
			if err != nil {
				return err
			}
			if err := do(cmd.Context(), c, key); err != nil {
				return err
			}
			fmt.Fprintf(p.streams.Out, done, key.Name, c.Flags)
			return nil
		},
	}
}
