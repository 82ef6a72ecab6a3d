// Node-network is the whole pod network of a test cluster: on each node it
// writes the CNI configuration for the node's own pod range, keeps a route to
// every other node's range, lets pods leave the cluster behind the node's
// address, and enforces NetworkPolicies.
//
// It runs as a DaemonSet with the node's root mounted at /host and uses the
// node's own ip, iptables, nft and conntrack. The same program lies on the
// node as the last plug-in of its network.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"rollcage.dev/kind-node/node-network/agent"
	"rollcage.dev/kind-node/node-network/cni"
	"rollcage.dev/kind-node/node-network/kernel"
	"rollcage.dev/kind-node/node-network/kube"
)

// A new node's pods are unreachable for at most this long.
const period = 2 * time.Second

func main() {
	if os.Getenv("CNI_COMMAND") != "" {
		os.Exit(cni.OfNode.Run(os.Getenv, os.Stdin, os.Stdout))
	}
	log.SetFlags(log.LstdFlags | log.Lmicroseconds)
	ctx := context.Background()
	self, podSubnet := os.Getenv("NODE_NAME"), os.Getenv("POD_SUBNET")
	// The control plane's own address, not the service's: kube-proxy may not have programmed that one yet.
	client, err := kube.InPod(os.Getenv("CONTROL_PLANE_ENDPOINT"))
	if err != nil {
		log.Fatal(err)
	}
	policies := agent.New(self, client, kernel.Kernel{Run: onHostWith}, hostRoot+cni.Records)
	if err := policies.Start(ctx); err != nil {
		log.Fatal(err)
	}
	log.Print("policies are enforced")
	go func() { log.Fatal(policies.Serve(hostRoot + cni.Socket)) }()
	// Last comes the configuration: with it the node is ready for pods.
	for ; ; time.Sleep(period) {
		nodes, err := listNodes(ctx, client)
		if err == nil {
			err = apply(nodes, self, podSubnet)
		}
		if err != nil {
			log.Print(err)
		}
	}
}
