package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/screen"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/memcached/ring"
)

// longest is the longest TTL that memcached takes for a duration: it takes a larger number for a Unix time.
const longest = 30 * 24 * time.Hour

const ofTheOwner = `

It uses the shard that owns the key by the ring in spec.access.hashing, or the one that --shard names. It needs the permission to create
pods/portforward and, with spec.auth, to get secrets. The role edit includes both.`

func (p *plugin) get() *cobra.Command {
	var (
		shard  string
		format output
	)
	cmd := &cobra.Command{
		Use: "get NAME KEY", Short: "Print the value of a key",
		Long: `Print the value of a key as it is. With --output, also print its flags, its TTL in seconds (-1: it doesn't expire) and its CAS; a value that isn't
text is in base64. The exit code is 6 if the shard doesn't have the key.` + ofTheOwner,
		Example: "  kubectl memcached get cache user:1\n  kubectl memcached get cache user:1 -o json",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKey(cmd.Context(), args, shard, func(ctx context.Context, conn *protocol.Conn, shard, key string) error {
				head, value, err := conn.Get(ctx, key, " v f t c")
				if err != nil {
					return fmt.Errorf("reading from %s: %w", shard, err)
				}
				if head.Code == protocol.MetaMiss {
					return fmt.Errorf("%s %w", shard, errNotFound)
				}
				item := screen.NewItem(shard, key, value, head.Flags, head.TTL, head.CAS)
				text := item.Text() // as it is
				if format != "" {
					text, err = format.format(item)
				}
				if err == nil {
					_, err = io.WriteString(p.streams.Out, text)
				}
				return err
			})
		},
	}
	p.addShard(cmd, &shard)
	format.add(cmd)
	return cmd
}

func (p *plugin) set() *cobra.Command {
	var (
		shard string
		ttl   time.Duration
	)
	cmd := &cobra.Command{
		Use: "set NAME KEY [VALUE]", Short: "Store a value under a key",
		Long:    "Store a value under a key, with flags 0. Without VALUE, store what standard input has, as it is." + ofTheOwner,
		Example: "  kubectl memcached set cache greeting hello --ttl 1h\n  kubectl memcached set cache page < page.html",
		Args:    cobra.RangeArgs(2, 3), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			expires := exptime(ttl, time.Now())
			if expires > math.MaxInt32 {
				return usageError{fmt.Errorf("--ttl is %s: memcached's time ends on 19 January 2038; use less, or 0 for an item that doesn't expire", ttl)}
			}
			value, err := p.value(args[2:])
			if err != nil {
				return err
			}
			return p.withKey(cmd.Context(), args, shard, func(ctx context.Context, conn *protocol.Conn, shard, key string) error {
				if err := conn.Set(ctx, key, value, expires); err != nil {
					return fmt.Errorf("storing on %s: %w", shard, err)
				}
				fmt.Fprintf(p.streams.Out, "%s stores %d bytes\n", shard, len(value))
				return nil
			})
		},
	}
	p.addShard(cmd, &shard)
	addDuration(cmd, &ttl, "ttl", 0, 0, "How long the item lives, such as 1h. Default: it doesn't expire")
	return cmd
}

func (p *plugin) delete() *cobra.Command {
	var (
		shard  string
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "delete NAME KEY", Short: "Delete a key",
		Long:    "Delete a key. It doesn't ask. The exit code is 6 if the shard doesn't have the key." + ofTheOwner,
		Example: "  kubectl memcached delete cache user:1\n  kubectl memcached delete cache user:1 --dry-run",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withKey(cmd.Context(), args, shard, func(ctx context.Context, conn *protocol.Conn, shard, key string) error {
				remove, done := conn.Delete, "%s has deleted the key\n"
				if dryRun {
					remove, done = exists(conn), "%s would delete the key\n"
				}
				found, err := remove(ctx, key)
				if err != nil {
					return fmt.Errorf("deleting on %s: %w", shard, err)
				}
				if !found {
					return fmt.Errorf("%s %w", shard, errNotFound)
				}
				fmt.Fprintf(p.streams.Out, done, shard)
				return nil
			})
		},
	}
	p.addShard(cmd, &shard)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "Say which shard would delete the key, and delete nothing")
	return cmd
}

func exists(conn *protocol.Conn) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, key string) (bool, error) {
		head, _, err := conn.Get(ctx, key, "")
		return head.Code == protocol.MetaHit, err
	}
}

func (p *plugin) addShard(cmd *cobra.Command, shard *string) {
	cmd.Flags().StringVar(shard, "shard", "", "Ordinal or name of the shard to use, such as 0")
	_ = cmd.RegisterFlagCompletionFunc("shard", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) { // the flag exists
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.completeShards(cmd, args[:1], typed)
	})
}

// value returns the one in the arguments, or standard input.
func (p *plugin) value(args []string) ([]byte, error) {
	if len(args) > 0 {
		return []byte(args[0]), nil
	}
	value, err := io.ReadAll(io.LimitReader(p.streams.In, protocol.MaxValue+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading standard input: %w", err)
	case len(value) > protocol.MaxValue:
		return nil, usageError{errors.New("standard input has more than 1 GiB, which no memcached stores: store less")}
	}
	return value, nil
}

// exptime returns a TTL as memcached expects it.
func exptime(ttl time.Duration, now time.Time) int64 {
	if ttl > longest {
		return now.Unix() + seconds(ttl)
	}
	return seconds(ttl)
}

// withKey calls do with a connection to the shard for a key. The arguments are the name of a Memcached, and the key.
func (p *plugin) withKey(ctx context.Context, args []string, shard string, do func(ctx context.Context, conn *protocol.Conn, shard, key string) error) error {
	key := args[1]
	if err := checkKey(key); err != nil {
		return err
	}
	c, m, err := p.find(ctx, args[0])
	if err != nil {
		return err
	}
	s, err := owner(c, m, key, shard)
	if err != nil {
		return err
	}
	dialing, cancel := p.bounded(ctx)
	defer cancel()
	conn, err := c.Server(m, s.PodName).Dial(dialing)
	if err != nil {
		return err
	}
	defer conn.Close()
	return do(dialing, conn, s.Name, key)
}

// checkKey returns an error for a key that clients of the text protocol can't use.
func checkKey(key string) error {
	if len(key) == 0 || len(key) > protocol.MaxKey {
		return usageError{fmt.Errorf("the key has %d bytes: memcached's have 1 to %d", len(key), protocol.MaxKey)}
	}
	if i := strings.IndexFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return usageError{fmt.Errorf("the key has %q as byte %d: memcached's keys have no spaces and no control characters", key[i], i+1)}
	}
	return nil
}

// owner returns the shard that a user names, or else the one that owns a key by the ring of the spec.
func owner(c *cluster.Cluster, m *v1beta1.Memcached, key, shard string) (v1beta1.ShardStatus, error) {
	hashing := m.Spec.Access.Hashing
	switch {
	case shard != "":
		return shardOf(c, m, shard)
	case len(m.Status.Servers) <= 1:
		return shardOf(c, m, "0")
	case hashing == nil:
		return v1beta1.ShardStatus{}, usageError{fmt.Errorf("%s has %d shards, and spec.access.hashing doesn't say how its clients choose one: set it, or name the shard with --shard",
			m.Name, len(m.Status.Servers))}
	}
	r, err := ring.New(string(hashing.Algorithm), v1beta1.HashedServers(m))
	if err != nil {
		return v1beta1.ShardStatus{}, fmt.Errorf("spec.access.hashing of %s: %w. Name the shard with --shard", m.Name, err)
	}
	return shardOf(c, m, strconv.Itoa(r.Shard([]byte(key))))
}

func (p *plugin) shell() *cobra.Command {
	var shard string
	cmd := &cobra.Command{
		Use: "shell NAME", Short: "Send commands to memcached of a shard",
		Long: `Send commands of memcached's text protocol to a shard, a line each, and print the answers, until "quit" or the end of standard input. It logs in
by itself. It needs the permission to create pods/portforward and, with spec.auth, to get secrets. The role edit includes both.`,
		Example: "  kubectl memcached shell cache --shard 0\n  echo stats | kubectl memcached shell cache --shard 0",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if shard == "" && len(m.Status.Shards) > 1 {
				return usageError{fmt.Errorf("%s has %d shards: name one with --shard", m.Name, len(m.Status.Shards))}
			}
			s, err := owner(c, m, "", shard)
			if err != nil {
				return err
			}
			dialing, cancel := p.bounded(cmd.Context())
			conn, err := c.Server(m, s.PodName).Connect(dialing)
			cancel()
			if err != nil {
				return err
			}
			defer conn.Close()
			if isTerminal(p.streams.Out) {
				fmt.Fprintf(p.streams.ErrOut, "Connected to %s. \"quit\" ends the session.\n", s.Name)
			}
			return p.session(cmd.Context(), conn)
		},
	}
	p.addShard(cmd, &shard)
	return cmd
}

// session copies lines of the user to memcached, and its answers to the user, until memcached closes the connection.
func (p *plugin) session(ctx context.Context, conn net.Conn) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		for in := bufio.NewReader(p.streams.In); ; {
			line, err := in.ReadString('\n')
			if line != "" {
				_, _ = io.WriteString(conn, strings.TrimRight(line, "\r\n")+"\r\n") // reading fails too
			}
			if err != nil {
				_ = conn.SetDeadline(time.Now().Add(answerTime))
				_, _ = io.WriteString(conn, "quit\r\n")
				return
			}
		}
	}()
	_, err := io.Copy(p.streams.Out, conn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
