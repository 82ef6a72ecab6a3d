package agent

import (
	"maps"
	"reflect"

	"rollcage.dev/kind-node/node-network/policy"
)

// What the API server tells of each kind of objects, and what is kept of it.

type podFollower struct{ *State }

func (s podFollower) Replace(all []podObject) {
	s.change(func() {
		gone := maps.Clone(s.pods)
		for _, one := range all {
			delete(gone, one.Metadata.UID)
			s.put(one.pod())
		}
		for uid := range gone {
			delete(s.pods, uid)
			s.forget(uid)
			s.generation++
		}
		s.listed["pods"] = true
	})
}

func (s podFollower) Put(one podObject) {
	s.change(func() { s.put(one.pod()) })
}

func (s podFollower) Remove(one podObject) {
	s.change(func() {
		delete(s.pods, one.Metadata.UID)
		s.forget(one.Metadata.UID)
		s.generation++
	})
}

func (s podFollower) put(pod policy.Pod) {
	if pod.Node == s.node {
		pod.Addresses = nil // the node itself knew them before, and better
	}
	if old, known := s.pods[pod.UID]; known && reflect.DeepEqual(old, pod) {
		return // most of what is told about pods is nothing that policies ask about
	}
	s.pods[pod.UID] = pod
	for _, one := range s.here {
		if one.UID == pod.UID {
			one.pod = &pod
		}
	}
	s.generation++
}

type namespaceFollower struct{ *State }

func (s namespaceFollower) Replace(all []namespaceObject) {
	s.change(func() {
		s.namespaces = map[string]map[string]string{}
		for _, one := range all {
			s.namespaces[one.Metadata.Name] = labels(one)
		}
		s.listed["namespaces"] = true
		s.generation++
	})
}

func (s namespaceFollower) Put(one namespaceObject) {
	s.change(func() {
		if !maps.Equal(s.namespaces[one.Metadata.Name], labels(one)) {
			s.namespaces[one.Metadata.Name] = labels(one)
			s.generation++
		}
	})
}

func (s namespaceFollower) Remove(one namespaceObject) {
	s.change(func() {
		delete(s.namespaces, one.Metadata.Name)
		s.generation++
	})
}

// labels are never nil: a namespace that is known has some.
func labels(one namespaceObject) map[string]string {
	if one.Metadata.Labels == nil {
		return map[string]string{}
	}
	return one.Metadata.Labels
}

type policyFollower struct{ *State }

func (s policyFollower) Replace(all []policyObject) {
	s.change(func() {
		s.policies = map[string]policyObject{}
		for _, one := range all {
			s.policies[one.Metadata.key()] = one
		}
		s.listed["policies"] = true
		s.generation++
	})
}

func (s policyFollower) Put(one policyObject) {
	s.change(func() {
		s.policies[one.Metadata.key()] = one
		s.generation++
	})
}

func (s policyFollower) Remove(one policyObject) {
	s.change(func() {
		delete(s.policies, one.Metadata.key())
		s.generation++
	})
}
