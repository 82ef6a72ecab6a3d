// Package agent keeps a node's firewall as the cluster's NetworkPolicies say:
// it follows the cluster, learns from the node's own network which pod really
// has which address, and tells the kernel whatever changes.
package agent

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"rollcage.dev/kind-node/node-network/policy"
)

// Attachment is a pod that was given an address on this node.
type Attachment struct {
	Container string
	UID       string
	Address   netip.Addr
}

// State is all that is known, and who waits for more of it.
type State struct {
	node string

	mu         sync.Mutex
	pods       map[string]policy.Pod
	namespaces map[string]map[string]string
	policies   map[string]policyObject
	// Pods of this node of which it is certain that every policy older than they are is known.
	vetted map[string]bool
	here   map[netip.Addr]*resident
	listed map[string]bool
	// What the kernel was told last.
	enforced map[netip.Addr]policy.Pod

	generation, applied uint64
	news                chan struct{}
}

type resident struct {
	Attachment
	// What was last seen of it: a pod whose object is gone lives a little longer.
	pod *policy.Pod
}

// NewState knows nothing yet.
func NewState(node string) *State {
	return &State{
		node:       node,
		pods:       map[string]policy.Pod{},
		namespaces: map[string]map[string]string{},
		policies:   map[string]policyObject{},
		vetted:     map[string]bool{},
		here:       map[netip.Addr]*resident{},
		listed:     map[string]bool{},
		news:       make(chan struct{}),
	}
}

// change does something to the state; whoever waits looks again.
func (s *State) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.news)
	s.news = make(chan struct{})
}

// Until waits until something is so, asked with the state held still.
func (s *State) Until(ctx context.Context, so func() bool) error {
	for {
		s.mu.Lock()
		done, news := so(), s.news
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// seen is what decisions are made of, and how new it is. Residents about whom
// something is not yet known are left out, and so get nothing through.
func (s *State) seen() (policy.Seen, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := policy.Seen{
		Node:       s.node,
		Pods:       slices.Collect(maps.Values(s.pods)),
		Namespaces: maps.Clone(s.namespaces),
		Here:       map[netip.Addr]policy.Pod{},
	}
	for _, one := range s.policies {
		seen.Policies = append(seen.Policies, one.policy())
	}
	for address, one := range s.here {
		if one.pod != nil && s.namespaces[one.pod.Namespace] != nil && s.vetted[one.UID] {
			seen.Here[address] = *one.pod
		}
	}
	return seen, s.generation
}

// attach notes who has an address, and returns the container that had it before and now has it no more.
func (s *State) attach(a Attachment) (before string) {
	s.change(func() {
		new := &resident{Attachment: a}
		if pod, known := s.pods[a.UID]; known {
			new.pod = &pod
		}
		if old := s.here[a.Address]; old != nil && old.Container != a.Container {
			before = old.Container
		}
		s.here[a.Address] = new
		s.generation++
	})
	return before
}

// detach notes that a pod is gone; its address may have been given to another one already.
func (s *State) detach(container string) {
	s.change(func() {
		for address, one := range s.here {
			if one.Container == container {
				delete(s.here, address)
				s.forget(one.UID)
				s.generation++
			}
		}
	})
}

// forget drops what was only kept for a pod that has neither an object nor an address any more.
func (s *State) forget(uid string) {
	if _, known := s.pods[uid]; known {
		return
	}
	for _, one := range s.here {
		if one.UID == uid {
			return
		}
	}
	delete(s.vetted, uid)
}
