package agent

import (
	"fmt"
	"time"

	"github.com/memcached-operator/memcached-operator/internal/agent/wire"
)

// assessStart compares the number of items right after a start with what was saved
// before. rejection is memcached's reason for not loading the saved items.
func assessStart(before savedData, rejection string, items int64, at time.Time) wire.Start {
	start := wire.Start{Result: wire.StartCold, Items: items, ItemsBefore: before.itemsBefore(), At: at}
	switch {
	case before.damage != "":
		start.Reason = "the saved items were unusable and were removed: " + before.damage
	case before.file == nil && before.ran:
		start.Reason = "memcached did not save its items at its last stop"
	case before.file == nil:
		start.Reason = "no saved items: first start of this pod"
	case rejection != "":
		start.Reason = "memcached rejected the saved items: " + rejection
	case items == 0 && start.ItemsBefore > 0:
		start.Reason = fmt.Sprintf("memcached loaded none of the %d saved items", start.ItemsBefore)
	default:
		start.Result = wire.StartWarm
		start.Reason = "memcached loaded the saved items"
	}
	return start
}
