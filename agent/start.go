package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agentapi"
	"github.com/memcached-operator/memcached-operator/internal/memcache"
)

// ready is a child's first answer, or that there is none.
type ready struct {
	child *child
	// general is zero when memcached gives no stats, as under -Y.
	general memcache.General
	// silent tells that memcached listens and does not answer.
	silent bool
}

// awaitReady reports on readies when memcached answers, or does not though it
// listens. It ends without a word when memcached does.
func awaitReady(c *child, readies chan<- ready) {
	var silentSince time.Time
	for pause := 2 * time.Millisecond; ; pause = min(pause*3/2, 50*time.Millisecond) {
		general, err := firstAnswer(c)
		switch {
		case err == nil:
			readies <- ready{child: c, general: general}
			return
		case !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded):
			silentSince = time.Time{}
		case silentSince.IsZero():
			silentSince = time.Now()
		case time.Since(silentSince) > silentBound:
			readies <- ready{child: c, silent: true}
			return
		}
		select {
		case <-c.done:
			return
		case <-time.After(pause):
		}
	}
}

var errAnotherAnswers = errors.New("another memcached holds the port")

func firstAnswer(c *child) (memcache.General, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if !c.asker.endpoint.text {
		return memcache.General{}, c.asker.answers(ctx)
	}
	general, err := c.asker.general(ctx)
	switch {
	case memcache.IsAnswer(err):
		return memcache.General{}, nil
	case err == nil && general.PID != c.pid:
		// The own one is about to end.
		return general, errAnotherAnswers
	}
	return general, err
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
