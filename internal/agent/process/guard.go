package process

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/cmdline"
	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
)

// guardInterval is the time between two checks of what clients can change.
const guardInterval = 10 * time.Second

// guarded are settings that every client can change, and not by a mistake: memcached has no permissions for its commands.
// Changed ones fill the log with all keys, use up memory, or let backups fail. slab_automove is the handover's.
var guarded = []struct {
	name string
	// command restores a value that memcached reports.
	command func(value string) string
}{
	{"verbosity", func(value string) string { return "verbosity " + value }},
	{"detail_enabled", func(value string) string { return "stats detail " + either(value, "on", "off") }},
	{"lru_crawler", func(value string) string { return "lru_crawler " + either(value, "enable", "disable") }},
	{"lru_crawler_sleep", func(value string) string { return "lru_crawler sleep " + value }},
	{"lru_crawler_tocrawl", func(value string) string { return "lru_crawler tocrawl " + value }},
	{"lru_segmented", func(value string) string { return "lru mode " + either(value, "segmented", "flat") }},
}

func either(value, yes, no string) string {
	if value == "yes" {
		return yes
	}
	return no
}

// Guard restores settings that clients have changed, and bounds the memory of memcached, until it has exited. room
// returns how much memory the container has for what memcached allocates, and false if it is not limited.
func (p *Process) Guard(version string, arguments []string, room func() (bytes int64, limited bool), log *slog.Logger) {
	started := protocol.Stats{}
	for {
		bytes, limited := room()
		if err := p.data.set(version, bytes, limited); err != nil {
			log.Warn("Cannot limit the memory of memcached: a client can let the kernel kill it", "error", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), QueryTimeout)
		settings, err := Query(ctx, p.Client, func(conn *protocol.Conn, ctx context.Context) (protocol.Stats, error) {
			return conn.Stats(ctx, "stats settings")
		})
		cancel()
		next := guardInterval
		switch {
		case err != nil: // the next check follows
			if len(started) == 0 {
				next = time.Second
			}
		case len(started) == 0:
			// A client can have been faster than this.
			started = settings
			started["verbosity"] = strconv.Itoa(cmdline.Verbosity(arguments))
			fallthrough
		default:
			p.restore(started, settings, log)
		}
		select {
		case <-p.Done:
			return
		case <-time.After(next):
		}
	}
}

// restore lets memcached have the settings with which it started.
func (p *Process) restore(started, settings protocol.Stats, log *slog.Logger) {
	for _, setting := range guarded {
		now, known := settings[setting.name]
		want := started[setting.name]
		if !known || now == want {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), QueryTimeout)
		err := p.Client.Command(ctx, func(conn *protocol.Conn, ctx context.Context) error {
			return conn.Command(ctx, setting.command(want))
		})
		cancel()
		if err == nil {
			p.Client.Restored.Add(1)
		}
		log.Warn(fmt.Sprintf("A client changed the setting %s of memcached to %s; restoring %s", setting.name, now, want), "error", err)
	}
}
