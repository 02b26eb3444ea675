// CoreDNS with the few plugins that a cluster without internet needs.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	// the order in which a query passes the plugins
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
