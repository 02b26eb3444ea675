package main

import (
	"context"
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// ready is a child's first answer.
type ready struct {
	child *child
	// general is zero when memcached gives no stats, as under -Y.
	general memcache.General
}

// awaitReady reports on readies when memcached answers. It ends without a word
// when memcached does.
func awaitReady(c *child, readies chan<- ready) {
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		if general, ok := firstAnswer(c); ok {
			readies <- ready{c, general}
			return
		}
		select {
		case <-c.done:
			return
		case <-time.After(pause):
		}
	}
}

func firstAnswer(c *child) (memcache.General, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !c.asker.endpoint.text {
		return memcache.General{}, c.asker.answers(ctx) == nil
	}
	general, err := c.asker.general(ctx)
	if err != nil {
		return memcache.General{}, memcache.IsAnswer(err)
	}
	// Another memcached may hold the port; then this one is about to end.
	return general, general.PID == c.pid
}

// judgeStart says whether memcached came up with the items that were saved.
// refusal is its own reason not to, items what it holds right after the start.
func judgeStart(before saved, refusal string, items int64, at time.Time) agentapi.Start {
	start := agentapi.Start{Result: agentapi.StartCold, Items: items, ItemsBefore: before.itemsBefore(), At: at}
	switch {
	case before.damage != "":
		start.Reason = "what memcached saved could not be taken up and was removed: " + before.damage
	case before.file == nil && before.ran:
		start.Reason = "memcached did not save before its last stop"
	case before.file == nil:
		start.Reason = "no saved items: first start of this pod"
	case refusal != "":
		start.Reason = "memcached refused what it had saved: " + refusal
	case items == 0 && start.ItemsBefore > 0:
		start.Reason = fmt.Sprintf("memcached took up none of the %d saved items", start.ItemsBefore)
	default:
		start.Result = agentapi.StartWarm
		start.Reason = "memcached took up the items that it had saved"
	}
	return start
}
