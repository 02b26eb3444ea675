package command

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

// lookAtShard is the pause between two looks at a shard that restarts.
const lookAtShard = time.Second

// shardOf returns the shard that a user names by its ordinal or its name.
func shardOf(c *cluster.Cluster, m *v1beta1.Memcached, name string) (v1beta1.ShardStatus, error) {
	for _, s := range m.Status.Shards {
		if s.Name != name && s.Name != m.Name+"-"+name {
			continue
		}
		if s.PodName == "" {
			return s, fmt.Errorf("shard %s has no pod now: \"kubectl memcached why %s %s\" says why", s.Name, m.Name, c.Flags)
		}
		return s, nil
	}
	if len(m.Status.Shards) == 0 {
		return v1beta1.ShardStatus{}, fmt.Errorf("%s has no shards: \"kubectl memcached why %[1]s %s\" says why", m.Name, c.Flags)
	}
	return v1beta1.ShardStatus{}, usageError{fmt.Errorf("%s has no shard %s: name one from 0 to %d", m.Name, name, len(m.Status.Shards)-1)}
}

// namesOf returns the names of all shards, and that of the first one if none exists, about which shardOf says why.
func namesOf(m *v1beta1.Memcached) (names []string) {
	for _, s := range m.Status.Shards {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return []string{"0"}
	}
	return names
}

// stamp is a new value of an annotation.
func stamp(now time.Time) string { return strconv.FormatInt(now.Unix(), 10) }

func (p *plugin) restart() *cobra.Command {
	var (
		all, wait bool
		timeout   = 5 * time.Minute
	)
	cmd := &cobra.Command{
		Use: "restart NAME SHARD...", Short: "Restart memcached of shards in place, with its items",
		Long: `Restart memcached of shards in place, one after the other. It keeps its items. A shard is its ordinal, such as 0, or its name.

By hand, you set the annotation ` + v1beta1.AnnotationRestart + ` of the shard's pod to another value.`,
		Example: "  kubectl memcached restart cache 0\n  kubectl memcached restart cache --all",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: p.completeShards,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return usageError{fmt.Errorf("name the shards to restart, or use --all")}
			}
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			names, wait := args[1:], wait && !p.dryRun
			if all {
				names = namesOf(m)
			}
			for _, name := range names {
				if _, err := shardOf(c, m, name); err != nil {
					return err // before the first one restarts
				}
			}
			for i, name := range names {
				if i > 0 && wait {
					if m, err = c.Memcached(cmd.Context(), client.ObjectKeyFromObject(m)); err != nil {
						return err
					}
				}
				if err := p.restartShard(cmd.Context(), c, m, name, wait, timeout); err != nil {
					if left := names[i+1:]; len(left) > 0 {
						err = fmt.Errorf("%w; not restarted: %s", err, strings.Join(left, ", "))
					}
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "Restart all shards")
	cmd.Flags().BoolVar(&wait, "wait", true, "Wait until a shard has restarted before the next one. Without it, all of them restart at the same time")
	addDuration(cmd, &timeout, "timeout", 0, 0, "How long to wait for a shard")
	return cmd
}

// restartShard restarts memcached of a shard, and waits for it.
func (p *plugin) restartShard(ctx context.Context, c *cluster.Cluster, m *v1beta1.Memcached, name string, wait bool, timeout time.Duration) error {
	s, err := shardOf(c, m, name)
	if err != nil {
		return err
	}
	value, began := stamp(c.Now()), c.Now()
	if err := c.AnnotatePod(ctx, client.ObjectKey{Namespace: m.Namespace, Name: s.PodName}, v1beta1.AnnotationRestart, value); err != nil {
		return err
	}
	if !wait {
		fmt.Fprintf(p.streams.Out, "%s restarts\n", s.Name)
		return nil
	}
	fmt.Fprintf(p.progress, "Waiting for %s\n", s.Name)
	for {
		if m, err = c.Memcached(ctx, client.ObjectKeyFromObject(m)); err != nil {
			return err
		}
		if s, err = shardOf(c, m, s.Name); err != nil {
			return err
		}
		if s.RestartAnnotation == value && s.Ready {
			fmt.Fprintf(p.streams.Out, "%s has restarted: %s\n", s.Name, screen.Start(s))
			if s.StartResult == v1beta1.StartCold { // what has lost its items is likely to do so elsewhere
				return fmt.Errorf("shard %s started without its items: \"kubectl describe memcached %s %s\" shows the event that says why", s.Name, m.Name, c.Flags)
			}
			return nil
		}
		if c.Now().Sub(began) >= timeout || !p.pause(ctx, lookAtShard) {
			return fmt.Errorf("shard %s hasn't reported its restart after %s: \"kubectl memcached why %s %s\" says why", s.Name, c.Now().Sub(began).Truncate(time.Second), m.Name, c.Flags)
		}
	}
}

func (p *plugin) move() *cobra.Command {
	var cancel bool
	cmd := &cobra.Command{
		Use: "move NAME SHARD", Short: "Move a shard to another node, with its items",
		Long: `Move a shard to another node, with its items. All gates apply. While no other node has room, the pod stays.

By hand, you set the annotation ` + v1beta1.AnnotationMove + ` of the shard's pod, or remove it to keep the pod.`,
		Example: "  kubectl memcached move cache 0\n  kubectl memcached move cache 0 --cancel",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: p.completeShards,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			s, err := shardOf(c, m, args[1])
			if err != nil {
				return err
			}
			value, done := stamp(c.Now()), "%s moves to another node: \"kubectl memcached why %s %s\" shows the progress\n"
			if cancel {
				value, done = "", "%s keeps its pod, unless its move has begun: \"kubectl memcached why %s %s\" shows it\n"
			}
			if err := c.AnnotatePod(cmd.Context(), client.ObjectKey{Namespace: m.Namespace, Name: s.PodName}, v1beta1.AnnotationMove, value); err != nil {
				return err
			}
			fmt.Fprintf(p.streams.Out, done, s.Name, m.Name, c.Flags)
			return nil
		},
	}
	cmd.Flags().BoolVar(&cancel, "cancel", false, "Keep the pod: remove the annotation")
	return cmd
}

// completeShards completes the name of a Memcached, and then the ordinals of its shards.
func (p *plugin) completeShards(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.completeNames(cmd, args, typed)
	}
	_, m, err := p.find(cmd.Context(), args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	ordinals := make([]string, 0, len(m.Status.Shards))
	for ordinal := range m.Status.Shards {
		ordinals = append(ordinals, strconv.Itoa(ordinal))
	}
	return ordinals, cobra.ShellCompDirectiveNoFileComp
}
