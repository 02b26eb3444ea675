package command

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/internal/text"
)

func (p *plugin) purge() *cobra.Command {
	var yes bool
	timeout := 5 * time.Minute
	cmd := &cobra.Command{
		Use: "purge NAME", Short: "Count, or with --yes delete, items that clients look for on other shards",
		Long: `Count the items of each shard whose keys belong to another shard, such as those that an earlier change of spec.size has left. With --yes, delete
them, too. A later change of spec.size can make their old values visible. It requires spec.access.hashing, and that at least 99% of the keys of each shard
are where it says; if 2,000 of them or more were used in the last 10 minutes, only these count.

By hand, you set the annotation ` + v1beta1.AnnotationPurge + ` to ` + v1beta1.PurgeDryRun + `<id>, and then to ` + v1beta1.PurgeDelete + `<id>. status.purge has the result.`,
		Example: "  kubectl memcached purge cache\n  kubectl memcached purge cache --yes",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			id := stamp(c.Now())
			s, err := p.requestPurge(cmd.Context(), c, m, v1beta1.PurgeDryRun+id, timeout)
			if err != nil {
				return err
			}
			switch items := p.printPurge(m, s); {
			case items == 0:
				fmt.Fprintln(p.streams.Out, "No shard has such items")
			case !yes:
				fmt.Fprintf(p.streams.Out, "Nothing was deleted: \"kubectl memcached purge %s %s --yes\" deletes these items\n", m.Name, c.Flags)
			default:
				if s, err = p.requestPurge(cmd.Context(), c, m, v1beta1.PurgeDelete+id, timeout); err != nil {
					return err
				}
				fmt.Fprintf(p.streams.Out, "%s: %s\n", m.Name, s.Message)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "Delete the items")
	addDuration(cmd, &timeout, "timeout", 0, 0, "How long to wait for the operator")
	return cmd
}

// requestPurge sets the annotation, and waits until the status says that the purge is complete.
func (p *plugin) requestPurge(ctx context.Context, c *cluster.Cluster, m *v1beta1.Memcached, value string, timeout time.Duration) (*v1beta1.PurgeStatus, error) {
	began, key, message := c.Now(), client.ObjectKeyFromObject(m), "status.purge isn't there, which requires release 1.1.0 of the operator or newer"
	if err := c.AnnotateMemcached(ctx, key, v1beta1.AnnotationPurge, value); err != nil {
		return nil, err
	}
	fmt.Fprintln(p.progress, "Waiting for the operator")
	for {
		m, err := c.Memcached(ctx, key)
		if err != nil {
			return nil, err
		}
		if s := m.Status.Purge; s != nil && s.Request == value {
			switch s.Phase {
			case v1beta1.TransferComplete:
				return s, nil
			case v1beta1.TransferFailed:
				return nil, fmt.Errorf("%s isn't purged: %s", m.Name, s.Message)
			}
			if s.Message != "" && s.Message != message {
				fmt.Fprintf(p.progress, "%s: %s\n", m.Name, s.Message)
			}
			message = s.Message
		}
		if c.Now().Sub(began) >= timeout || !p.pause(ctx, lookAtShard) {
			return nil, fmt.Errorf("the purge %s of %s isn't complete after %s, and continues: %s", value, m.Name, c.Now().Sub(began).Truncate(time.Second), message)
		}
	}
}

// printPurge prints what each shard would delete, and returns the number of all items.
func (p *plugin) printPurge(m *v1beta1.Memcached, s *v1beta1.PurgeStatus) (items int64) {
	out := tabwriter.NewWriter(p.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SHARD\tITEMS\tBYTES")
	for ordinal, shard := range s.Shards {
		fmt.Fprintf(out, "%s-%d\t%s\t%s\n", m.Name, ordinal, text.Thousands(shard.Items), text.Thousands(shard.Bytes))
		items += shard.Items
	}
	_ = out.Flush()
	return items
}
