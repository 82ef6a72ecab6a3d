package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"rollcage.dev/kind-node/node-network/cni"
	"rollcage.dev/kind-node/node-network/kube"
)

const conflist = hostRoot + "/etc/cni/net.d/10-node-network.conflist"

type node struct {
	name, podCIDR, address string
}

func listNodes(ctx context.Context, client *kube.Client) ([]node, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ PodCIDR string }
			Status   struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	if err := client.Get(ctx, "/api/v1/nodes?resourceVersion=0", &list); err != nil {
		return nil, err
	}
	var nodes []node
	for _, item := range list.Items {
		n := node{name: item.Metadata.Name, podCIDR: item.Spec.PodCIDR}
		for _, a := range item.Status.Addresses {
			if ip := net.ParseIP(a.Address); a.Type == "InternalIP" && ip.To4() != nil {
				n.address = a.Address
			}
		}
		if n.podCIDR != "" && n.address != "" {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

func apply(nodes []node, self, podSubnet string) error {
	errs := []error{masquerade(podSubnet)}
	for _, n := range nodes {
		if n.name == self {
			errs = append(errs, writeConflist(n.podCIDR))
		} else {
			errs = append(errs, onHost("ip", "route", "replace", n.podCIDR, "via", n.address))
		}
	}
	return errors.Join(errs...)
}

func masquerade(podSubnet string) error {
	rule := []string{"POSTROUTING", "-s", podSubnet, "!", "-d", podSubnet,
		"-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", "MASQUERADE"}
	if onHost("iptables", append([]string{"-w", "-t", "nat", "-C"}, rule...)...) == nil {
		return nil
	}
	return onHost("iptables", append([]string{"-w", "-t", "nat", "-A"}, rule...)...)
}

func writeConflist(podCIDR string) error {
	text := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "node-network", "plugins": [
  {"type": "ptp", "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
   "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": %q}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}},
  {"type": %q}]}
`, podCIDR, cni.Type)
	if old, err := os.ReadFile(conflist); err == nil && string(old) == text {
		return nil
	}
	// Renamed into place: containerd reads the directory whenever it changes.
	if err := os.WriteFile(conflist+".tmp", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(conflist+".tmp", conflist)
}
