package copy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/memcached-operator/memcached-operator/internal/memcached/protocol"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/store"
	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// attemptName is the object below a snapshot's path that exists while its task isn't finished.
const attemptName = "attempt.json"

// attempt is what the first attempt of a task found, so that a later one, or a shard that is copied later, can be
// compared with it.
type attempt struct {
	TaskID  string    `json:"taskID"`
	BeganAt time.Time `json:"beganAt"`
	// Items is the number of items of each shard, by ordinal.
	Items []int64 `json:"items"`
}

// firstAttempt returns the first attempt of a task, which is this one if the store has none.
func firstAttempt(ctx context.Context, bucket *blob.Bucket, task wire.Task, o Options) (first attempt, err error) {
	name := path.Join(task.Path, attemptName)
	switch text, err := bucket.ReadAll(ctx, name); {
	case err == nil:
		if json.Unmarshal(text, &first) == nil && first.TaskID == task.ID && len(first.Items) == len(task.Servers) {
			return first, nil
		}
	case gcerrors.Code(err) != gcerrors.NotFound:
		return first, store.Failure(err, "reading what the first attempt found")
	}
	first = attempt{TaskID: task.ID, BeganAt: o.Now(), Items: make([]int64, len(task.Servers))}
	for ordinal := range task.Servers {
		p := pipeline{checkServer: func(*conn) error { return nil }, target: newTarget(task, ordinal, o), timeout: o.ShardTimeout}
		c, err := p.connect(ctx)
		if err == nil {
			_ = c.Close()
			first.Items[ordinal], err = currentItems(c.stats)
		}
		if err != nil {
			return first, err
		}
	}
	text, err := json.Marshal(first)
	if err == nil {
		err = store.Failure(bucket.WriteAll(ctx, name, text, nil), "writing what the first attempt found")
	}
	return first, err
}

// forget deletes the attempt of a task that is finished.
func forget(ctx context.Context, bucket *blob.Bucket, task wire.Task, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := bucket.Delete(ctx, path.Join(task.Path, attemptName)); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		log.Warn("An object of the backup remains in the store", "path", task.Path, "object", attemptName, "error", err)
	}
}

// check returns errLost if a shard was started since the attempt, and has less than half of its items. The number
// alone isn't a loss, since it includes expired items, and neither is the start, since a new pod can have received the items.
func (a attempt) check(ordinal int, c *conn, now time.Time) error {
	items, err := currentItems(c.stats)
	if err != nil {
		return err
	}
	uptime, err := strconv.Atoi(c.stats["uptime"])
	if err == nil && now.Add(-time.Duration(uptime)*time.Second).After(a.BeganAt) && items*2 < a.Items[ordinal] {
		return fmt.Errorf("%w: it had %d items when the backup began, was started since then, and has %d", errLost, a.Items[ordinal], items)
	}
	return err
}

// currentItems returns the number of items of a shard.
func currentItems(stats protocol.Stats) (int64, error) {
	items, err := strconv.ParseInt(stats["curr_items"], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: curr_items is %.40q", protocol.ErrMalformed, stats["curr_items"])
	}
	return items, nil
}
