// Package policy decides what NetworkPolicies mean for the pods of one node:
// plain functions over what was seen of the cluster. Seeing it, and telling
// the kernel, belongs to others.
package policy

import (
	"encoding/json"
	"net/netip"
	"strconv"
)

// Pod is what a policy can ask about a pod.
type Pod struct {
	UID, Namespace, Name, Node string
	Labels                     map[string]string
	// Addresses as the API server tells them; of pods on another node.
	Addresses []netip.Addr
	Ports     []NamedPort
	// HostNetwork pods are part of their node: no policy selects them.
	HostNetwork bool
	// Ended pods have given their address back, or are about to.
	Ended bool
}

// NamedPort is a port of a container that has a name.
type NamedPort struct {
	Name, Protocol string
	Number         uint16
}

// Policy is a networking.k8s.io/v1 NetworkPolicy.
type Policy struct {
	Namespace, Name string
	Spec            Spec
}

// Spec is a NetworkPolicy's own words.
type Spec struct {
	PodSelector Selector
	PolicyTypes []string
	Ingress     []struct {
		From  []Peer
		Ports []Port
	}
	Egress []struct {
		To    []Peer
		Ports []Port
	}
}

// Peer is somebody at the other end: selected pods, or a range of addresses.
type Peer struct {
	PodSelector       *Selector
	NamespaceSelector *Selector
	IPBlock           *Block
}

// Block is a range of addresses, without some.
type Block struct {
	CIDR   string
	Except []string
}

// Port is one or several ports of a protocol.
type Port struct {
	Protocol string
	Port     *NumberOrName
	EndPort  uint16
}

// NumberOrName is how a policy says a port.
type NumberOrName struct {
	Number uint16
	Name   string
}

// UnmarshalJSON accepts both ways.
func (p *NumberOrName) UnmarshalJSON(text []byte) error {
	if number, err := strconv.ParseUint(string(text), 10, 16); err == nil {
		p.Number = uint16(number)
		return nil
	}
	return json.Unmarshal(text, &p.Name)
}

// rule is one way that a policy opens, in either direction.
type rule struct {
	peers []Peer
	ports []Port
}

// rules returns what a policy opens in one direction, and whether it says anything about that direction.
func (p Policy) rules(d direction) ([]rule, bool) {
	var found []rule
	if d == egress {
		for _, r := range p.Spec.Egress {
			found = append(found, rule{r.To, r.Ports})
		}
	} else {
		for _, r := range p.Spec.Ingress {
			found = append(found, rule{r.From, r.Ports})
		}
	}
	// The API server fills this in; the rule is kept for whoever reads a policy from elsewhere.
	if len(p.Spec.PolicyTypes) == 0 {
		return found, d == ingress || len(found) > 0
	}
	for _, kind := range p.Spec.PolicyTypes {
		if kind == d.String() {
			return found, true
		}
	}
	return nil, false
}
