package agent

// kept is what this agent knows about the items of the shard and wants to keep as long as memcached keeps them, by name: over restarts
// of memcached and of the container, and when another pod takes the items over.
type kept map[string]keeper

// keeper exports at most handover.MaxState bytes, and imports what an agent of any release exported under its name. It is nil
// if memcached started without the items, or if that agent didn't know the name. Both may run on any goroutine.
type keeper struct {
	export func() []byte
	load   func([]byte)
}

func (k kept) export() map[string][]byte {
	contents := map[string][]byte{}
	for name, keeper := range k {
		contents[name] = keeper.export()
	}
	return contents
}

func (k kept) load(contents map[string][]byte) {
	for name, keeper := range k {
		keeper.load(contents[name])
	}
}
