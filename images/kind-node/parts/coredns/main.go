// CoreDNS with only the plugins a cluster's Corefile names. The full list
// pulls in every cloud's SDK, which takes far longer to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/rewrite"
)

func init() {
	// The order is the order in which a query passes through the plugins.
	dnsserver.Directives = []string{
		"reload", "bind", "health", "ready", "prometheus", "errors", "log",
		"cache", "rewrite", "loadbalance", "hosts", "kubernetes", "loop", "forward",
	}
}

func main() { coremain.Run() }
