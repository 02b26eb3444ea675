// Dskit prints which server the memcached client of github.com/grafana/dskit, as in Loki and Mimir, picks for each key. Its
// arguments are the client's addresses: host:port, or a name to look up, such as dnssrvnoa+_memcached._tcp.cache.example.com.
// Standard input has a key in each line, and the output a server.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-kit/log"
	"github.com/grafana/dskit/cache"
	"github.com/grafana/dskit/dns"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dskit:", err)
		os.Exit(1)
	}
}

func run(addresses []string) error {
	// The provider that the client itself creates: it uses no search domains.
	provider := dns.NewProvider(dns.MiekgdnsResolverType, 1, log.NewNopLogger(), nil)
	if err := provider.Resolve(context.Background(), addresses); err != nil {
		return err
	}
	// The selector looks up the addresses of names, but not of a Unix socket. The same prefix keeps the order of the servers.
	const socket = "/"
	var sockets []string
	for _, server := range provider.Addresses() {
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
