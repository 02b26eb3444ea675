// Thanos prints the servers that the memcached client of github.com/thanos-io/thanos finds with auto discovery. Its
// argument is the endpoint, as host:port.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-kit/log"
	"github.com/thanos-io/thanos/pkg/discovery/memcache"
)

func main() {
	provider := memcache.NewProvider(log.NewLogfmtLogger(os.Stderr), nil, 5*time.Second)
	if err := provider.Resolve(context.Background(), os.Args[1:], true); err != nil {
		fmt.Fprintln(os.Stderr, "thanos:", err)
		os.Exit(1)
	}
	for _, server := range provider.Addresses() {
		fmt.Println(server)
	}
}
