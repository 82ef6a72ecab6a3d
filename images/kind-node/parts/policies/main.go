// Tell what NetworkPolicies mean, without a cluster.
//
// Reads {"policies": [...], "questions": [...]} from standard input and writes
// one true or false a question: whether that traffic is allowed, by the egress
// policies of its source and the ingress policies of its destination together.
// The meaning is cyclonus'; nothing is decided here.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	v1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// A peer is a pod, or somebody outside the cluster when it has no namespace.
type peer struct {
	Namespace       string            `json:"namespace"`
	NamespaceLabels map[string]string `json:"namespaceLabels"`
	Labels          map[string]string `json:"labels"`
	IP              string            `json:"ip"`
}

type question struct {
	From     peer        `json:"from"`
	To       peer        `json:"to"`
	Port     int         `json:"port"`
	PortName string      `json:"portName"`
	Protocol v1.Protocol `json:"protocol"`
}

func main() {
	log.SetFlags(0)
	var given struct {
		Policies  []*networking.NetworkPolicy `json:"policies"`
		Questions []question                  `json:"questions"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		log.Fatalf("policies: %v", err)
	}
	policy := matcher.BuildNetworkPolicies(false, given.Policies)
	answers := make([]bool, 0, len(given.Questions))
	for _, q := range given.Questions {
		answers = append(answers, policy.IsTrafficAllowed(&matcher.Traffic{
			Source:           q.From.traffic(),
			Destination:      q.To.traffic(),
			ResolvedPort:     q.Port,
			ResolvedPortName: q.PortName,
			Protocol:         q.Protocol,
		}).IsAllowed())
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatalf("policies: %v", err)
	}
}

func (p peer) traffic() *matcher.TrafficPeer {
	if p.Namespace == "" {
		return &matcher.TrafficPeer{IP: p.IP}
	}
	return &matcher.TrafficPeer{IP: p.IP, Internal: &matcher.InternalPeer{
		PodLabels:       p.Labels,
		NamespaceLabels: p.NamespaceLabels,
		Namespace:       p.Namespace,
	}}
}
