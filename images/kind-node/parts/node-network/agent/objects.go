package agent

import (
	"net/netip"
	"strconv"

	"rollcage.dev/kind-node/node-network/policy"
)

// The API server's objects, cut to what is needed of them.

type metadata struct {
	UID, Namespace, Name, ResourceVersion string
	Labels                                map[string]string
}

type podObject struct {
	Metadata metadata
	Spec     struct {
		NodeName       string
		HostNetwork    bool
		Containers     []containerObject
		InitContainers []containerObject
	}
	Status struct {
		Phase  string
		PodIPs []struct{ IP string }
	}
}

type containerObject struct {
	RestartPolicy string
	Ports         []struct {
		Name, Protocol string
		ContainerPort  uint16
	}
}

type namespaceObject struct{ Metadata metadata }

type policyObject struct {
	Metadata metadata
	Spec     policy.Spec
}

func (o podObject) pod() policy.Pod {
	pod := policy.Pod{
		UID:         o.Metadata.UID,
		Namespace:   o.Metadata.Namespace,
		Name:        o.Metadata.Name,
		Node:        o.Spec.NodeName,
		Labels:      o.Metadata.Labels,
		HostNetwork: o.Spec.HostNetwork,
		Ended:       o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed",
	}
	for _, one := range o.Status.PodIPs {
		if address, err := netip.ParseAddr(one.IP); err == nil && address.Is4() {
			pod.Addresses = append(pod.Addresses, address)
		}
	}
	for _, c := range o.Spec.InitContainers {
		// Those that stay beside the others; the rest is gone by then.
		if c.RestartPolicy == "Always" {
			pod.Ports = append(pod.Ports, c.named()...)
		}
	}
	for _, c := range o.Spec.Containers {
		pod.Ports = append(pod.Ports, c.named()...)
	}
	return pod
}

func (c containerObject) named() []policy.NamedPort {
	var found []policy.NamedPort
	for _, p := range c.Ports {
		if p.Name != "" {
			found = append(found, policy.NamedPort{Name: p.Name, Protocol: p.Protocol, Number: p.ContainerPort})
		}
	}
	return found
}

func (o policyObject) policy() policy.Policy {
	return policy.Policy{Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Spec: o.Spec}
}

func (m metadata) key() string {
	return m.Namespace + "/" + m.Name
}

// version orders an object's states; since Kubernetes 1.35 that is promised.
func (m metadata) version() uint64 {
	number, _ := strconv.ParseUint(m.ResourceVersion, 10, 64)
	return number
}
