// Dskit prints which server the memcached client of github.com/grafana/dskit picks for each key. Its arguments are
// the servers, as host:port. Standard input has a key in each line, and the output a server.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/grafana/dskit/cache"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dskit:", err)
		os.Exit(1)
	}
}

func run(servers []string) error {
	// dskit looks up the addresses of names, but not of a Unix socket. The same prefix keeps the order of the servers.
	const socket = "/"
	var sockets []string
	for _, server := range servers {
		sockets = append(sockets, socket+server)
	}
	var selector cache.MemcachedJumpHashSelector
	if err := selector.SetServers(sockets...); err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	keys := bufio.NewScanner(os.Stdin)
	for keys.Scan() {
		address, err := selector.PickServer(keys.Text())
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.TrimPrefix(address.String(), socket))
	}
	if err := keys.Err(); err != nil {
		return err
	}
	return out.Flush()
}
