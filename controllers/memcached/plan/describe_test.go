package plan_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/memcached-operator/memcached-operator/controllers/event"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/plan"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/resources"
	"github.com/memcached-operator/memcached-operator/controllers/memcached/shard"
)

// describe returns the writes of actions, one a line in their order, and when to reconcile again.
func describe(a plan.Actions) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if a.Finalizer.Add {
		add("add the finalizer")
	}
	if b := a.Finalizer.Backup; b != nil {
		add("create MemcachedBackup %s", b.Name)
	}
	if a.Finalizer.Remove {
		add("remove the finalizer%s", messageOf(a.Finalizer.Event))
	}
	for _, secret := range a.Secrets {
		add("create Secret %s", secret.Name)
	}
	if a.Binding != nil {
		add("%s Secret %s", map[bool]string{true: "create", false: "update"}[a.Binding.UID == ""], a.Binding.Name)
	}
	for _, o := range a.Apply {
		add("%s %s", map[bool]string{true: "create", false: "update"}[o.UID == ""], o.Key)
	}
	for _, p := range a.Patch {
		body, _ := json.Marshal(p.Body)
		add("patch %s%s: %s", p.Pod.Name, cmp.Or(map[string]string{shard.ResizeSubresource: "/resize"}[p.Subresource], p.Subresource), body)
	}
	for _, o := range a.Create {
		add("create %s", resources.KeyOf(o))
	}
	for _, o := range slices.Concat(a.Delete, a.ScaleIn) {
		add("delete %s", resources.KeyOf(o))
	}
	if a.RequeueAfter > 0 {
		add("again in %s", a.RequeueAfter)
	}
	return lines
}

func messageOf(e *event.Event) string {
	if e == nil {
		return ""
	}
	return ": " + e.Message
}
