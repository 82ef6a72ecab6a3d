package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"rollcage.dev/kind-node/node-network/nft"
)

// lines opens one rule: every peer with every port.
func (d *decision) lines(way direction, r rule, namespace string) []string {
	ends, ports := []string{""}, []string{""}
	if len(r.peers) > 0 {
		ends = nil
		for _, peer := range r.peers {
			if end, possible := d.end(way, peer, namespace); possible {
				ends = append(ends, end)
			}
		}
	}
	if len(r.ports) > 0 {
		ports = nil
		for _, port := range r.ports {
			ports = append(ports, d.port(port))
		}
	}
	var found []string
	for _, end := range ends {
		for _, port := range ports {
			found = append(found, strings.Join(strings.Fields(end+" "+port+" return"), " "))
		}
	}
	return found
}

// end matches one peer; one that no packet can come from is not possible.
func (d *decision) end(way direction, peer Peer, namespace string) (string, bool) {
	if peer.IPBlock != nil {
		return block(way.far(), *peer.IPBlock)
	}
	// The namespace is part of the name only where it is part of the meaning.
	home := namespace
	if peer.NamespaceSelector != nil {
		home = ""
	}
	set := "peers_" + hash(home, peer.NamespaceSelector.text(), peer.PodSelector.text())
	if !d.table.HasSet(set) {
		d.table.AddSet(set, nft.Addresses)
		for _, address := range d.known {
			if d.matches(peer, namespace, d.owners[address]) {
				d.table.Add(set, nft.Addresses, address.String(), "")
			}
		}
	}
	return way.far() + " @" + set, true
}

func (d *decision) matches(peer Peer, namespace string, pod Pod) bool {
	if peer.NamespaceSelector == nil {
		if pod.Namespace != namespace {
			return false
		}
	} else if labels, known := d.seen.Namespaces[pod.Namespace]; !known || !peer.NamespaceSelector.Matches(labels) {
		return false
	}
	return peer.PodSelector == nil || peer.PodSelector.Matches(pod.Labels)
}

func block(field string, b Block) (string, bool) {
	cidr, err := netip.ParsePrefix(b.CIDR)
	if err != nil || !cidr.Addr().Is4() {
		return "", false // IPv6 does not leave a pod here
	}
	var words []string
	if cidr.Bits() > 0 {
		words = append(words, field+" "+cidr.Masked().String())
	}
	for _, text := range b.Except {
		except, err := netip.ParsePrefix(text)
		if err != nil || except.Bits() == 0 {
			return "", false
		}
		words = append(words, field+" != "+except.Masked().String())
	}
	return strings.Join(words, " "), true
}

// port matches one port, a range, a protocol, or whatever port a pod calls by that name.
func (d *decision) port(p Port) string {
	protocol := strings.ToLower(p.Protocol)
	if protocol == "" {
		protocol = "tcp"
	}
	switch {
	case p.Port == nil:
		return "meta l4proto " + protocol
	case p.Port.Name != "":
		return "ip daddr . meta l4proto . th dport @" + d.named(p.Port.Name, protocol)
	case p.EndPort > p.Port.Number:
		return fmt.Sprintf("%s dport %d-%d", protocol, p.Port.Number, p.EndPort)
	}
	return fmt.Sprintf("%s dport %d", protocol, p.Port.Number)
}

// named is the set of all ports of that name; each pod says for itself what it calls so.
func (d *decision) named(name, protocol string) string {
	set := "ports_" + hash(name, protocol)
	if !d.table.HasSet(set) {
		d.table.AddSet(set, nft.Ports)
		for _, address := range d.known {
			for _, port := range d.owners[address].Ports {
				if port.Name == name && strings.EqualFold(port.Protocol, protocol) {
					element := fmt.Sprintf("%s . %s . %d", address, protocol, port.Number)
					d.table.Add(set, nft.Ports, element, "")
				}
			}
		}
	}
	return set
}
