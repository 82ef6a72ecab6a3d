package policy

import (
	"encoding/json"
	"slices"
)

// Selector chooses by labels; an empty one chooses everything.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is one thing that a selector asks of labels.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Matches tells whether all that the selector asks is there.
func (s Selector) Matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if has, there := labels[key]; !there || has != value {
			return false
		}
	}
	for _, asked := range s.MatchExpressions {
		if !asked.met(labels) {
			return false
		}
	}
	return true
}

func (r Requirement) met(labels map[string]string) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case "In":
		return there && slices.Contains(r.Values, value)
	case "NotIn":
		// A label that is not there is in no list.
		return !there || !slices.Contains(r.Values, value)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	}
	// An operator from the future: choosing nobody opens nothing, but would isolate nobody either.
	// The API server refuses it.
	return false
}

// text is the same for selectors that say the same in the same words.
func (s *Selector) text() string {
	if s == nil {
		return "-"
	}
	written, err := json.Marshal(s) // sorts the keys of maps
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(written)
}
