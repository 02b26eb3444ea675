package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
)

const (
	// firstWindow is the time between two samples before the first screen.
	firstWindow = 1200 * time.Millisecond
	// windowsOnce are those before what is printed once: a shard deviates in three.
	windowsOnce = 3
	// topLines is the default of --limit without a terminal, and besideShards are the lines of a screen that have no shard.
	topLines, besideShards = 40, 4
)

func (p *plugin) top() *cobra.Command {
	var (
		format output
		all    bool
		limit  int
	)
	cmd := &cobra.Command{
		Use: "top [NAME]", Short: "Show what shards do now",
		Long: `Show requests, hit ratio, eviction age, memory, connections and CPU of shards, and look again every two seconds. Without a terminal, or
with --output, show them once, after three windows.

EVICTION AGE is for how long no client had used the items that memcached evicts. DEVIATES names what is more than 20% and five median
deviations off the median of the shards of the Memcached, in three windows. Without a name, it queries only the shards that it shows.

It needs the permission to create pods/portforward, which the role edit includes.`,
		Example: "  kubectl memcached top cache\n  kubectl memcached top -A --limit 100",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usageError{errors.New("--limit is at least 1")}
			}
			c, key, err := p.oneOrAll(args, all)
			if err != nil {
				return err
			}
			watch := isTerminal(p.streams.Out) && format == ""
			t := topScreen{c: c, key: key, size: func() (shards, width int) {
				shards, width = sizeOf(p.streams.Out)
				return cmp.Or(limit, shards), width
			}}
			return p.show(cmd.Context(), &format, watch, func(ctx context.Context) (shown, screen.State, error) {
				windows := 1
				if !watch {
					windows = windowsOnce
				}
				for ; t.samples == nil || !watch && windows > 0; windows-- {
					if err := t.look(ctx); err != nil {
						return nil, "", err
					}
					if !p.pause(ctx, firstWindow) {
						return nil, "", errors.New("interrupted")
					}
				}
				err := t.look(ctx)
				return t.screen(), screen.Ready, err
			})
		},
	}
	format.add(cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "Show the shards of all namespaces")
	cmd.Flags().IntVar(&limit, "limit", 0, "How many shards to show and query without a name. Default: as many as the terminal has lines, or 40")
	return cmd
}

// sizeOf returns how many shards a terminal has lines for, and how wide it is.
func sizeOf(out io.Writer) (shards, width int) {
	if file, ok := out.(*os.File); ok {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil {
			return max(1, height-besideShards), width
		}
	}
	return topLines, 0
}

// topScreen is what top has read.
type topScreen struct {
	c    *cluster.Cluster
	key  client.ObjectKey
	size func() (shards, width int)

	places  []screen.Place
	more    int64
	omitted []string
	samples map[screen.Place][]screen.Sample
}

// look queries the shards that are shown.
func (t *topScreen) look(ctx context.Context) error {
	if err := t.choose(ctx); err != nil {
		return err
	}
	running := slices.DeleteFunc(slices.Clone(t.places), func(s screen.Place) bool { return s.Pod == "" })
	now, failed := t.c.Metrics(ctx, running)
	samples := map[screen.Place][]screen.Sample{}
	for place, sample := range now {
		former := t.samples[place]
		samples[place] = append(former[max(0, len(former)-windowsOnce):len(former):len(former)], sample)
	}
	t.samples, t.omitted = samples, nil
	for _, err := range failed {
		t.omitted = append(t.omitted, explain(err))
	}
	slices.Sort(t.omitted)
	return nil
}

// choose chooses complete Memcacheds, of which at least one is shown.
func (t *topScreen) choose(ctx context.Context) error {
	var all []v1beta1.Memcached
	limit, _ := t.size()
	if t.key.Name == "" {
		var err error
		if all, t.more, err = t.c.FirstMemcacheds(ctx, t.key.Namespace, limit); err != nil {
			return err
		}
	} else {
		m, err := t.c.Memcached(ctx, t.key)
		if err != nil {
			return err
		}
		all = []v1beta1.Memcached{*m}
	}
	t.places = nil
	for i, m := range all {
		if len(t.places) > 0 && len(t.places)+len(m.Status.Shards) > limit {
			t.more += int64(len(all) - i)
			break
		}
		for _, s := range m.Status.Shards {
			t.places = append(t.places, screen.Place{Namespace: m.Namespace, Memcached: m.Name, Shard: s.Name, Pod: s.PodName})
		}
	}
	return nil
}

func (t *topScreen) screen() screen.Top {
	s := screen.NewTop(t.places, t.samples, t.key.Namespace == metav1.NamespaceAll, t.more, t.omitted)
	_, s.Width = t.size()
	return s
}
