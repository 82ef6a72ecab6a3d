package agent

// unvetted are the pods of this node that were not yet compared with the policies; the state is held.
func (s *State) unvetted() []string {
	var found []string
	for uid, pod := range s.pods {
		if pod.Node == s.node && !pod.HostNetwork && !pod.Ended && !s.vetted[uid] {
			found = append(found, uid)
		}
	}
	return found
}

// knows tells whether all these policies have been heard of, or what became of them; the state is held.
func (s *State) knows(all []policyObject) bool {
	for _, one := range all {
		has, known := s.policies[one.Metadata.key()]
		if !known || has.Metadata.version() < one.Metadata.version() {
			return false
		}
	}
	return true
}
