package resources

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// extraOption matches the options that spec.config.extraArgs may contain, without or with their values in one word. The operator
// sets the others.
var extraOption = regexp.MustCompile(`^(-(v{1,3}|[CLMFXWkr]|[fnRbDo].*)|--(verbose|disable-cas|enable-largepages|disable-evictions|` +
	`disable-flush-all|disable-dumping|disable-watch|lock-memory|enable-coredumps|slab-growth-factor|slab-min-size|max-reqs-per-event|` +
	`listen-backlog|extended)(=.+)?)$`)

// operatorExtended are the prefixes of what the option -o must not contain, and why.
var operatorExtended = []struct{ prefix, why string }{
	{"ext_", "external storage doesn't keep its items over a restart"},
	{"proxy_", "the proxy doesn't keep its items over a restart"},
	{"ssl_", "the operator sets the options of TLS, as spec.tls says"},
}

// ExtraArgsProblem returns which word of spec.config.extraArgs memcached can't get, and what to do; empty if it can get all.
func ExtraArgsProblem(words []string) string {
	for _, word := range words {
		if strings.HasPrefix(word, "-") && !extraOption.MatchString(word) {
			return fmt.Sprintf("spec.config.extraArgs contains %s, an option that is unknown or that the operator sets; remove it, or write it in full "+
				"and apart from other options: spec.memory and the other fields of spec.config have options of their own, and the operator manages ports, "+
				"addresses, protocol, user, daemon mode, the restartable cache, TLS and authentication", word)
		}
		if i := slices.IndexFunc(operatorExtended, func(o struct{ prefix, why string }) bool { return strings.Contains(word, o.prefix) }); i >= 0 {
			return fmt.Sprintf("spec.config.extraArgs contains %s; remove it: %s", word, operatorExtended[i].why)
		}
	}
	return ""
}
