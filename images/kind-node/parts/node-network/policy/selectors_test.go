package policy

import "testing"

func TestSelectors(t *testing.T) {
	labels := map[string]string{"app": "web", "empty": ""}
	ask := func(key, operator string, values ...string) Selector {
		return Selector{MatchExpressions: []Requirement{{key, operator, values}}}
	}
	for name, c := range map[string]struct {
		selector Selector
		want     bool
	}{
		"an empty one chooses everything":               {Selector{}, true},
		"a label with its value":                        {Selector{MatchLabels: map[string]string{"app": "web"}}, true},
		"a label with another value":                    {Selector{MatchLabels: map[string]string{"app": "db"}}, false},
		"an empty value is not a label that is missing": {Selector{MatchLabels: map[string]string{"no": ""}}, false},
		"an empty value that is there":                  {Selector{MatchLabels: map[string]string{"empty": ""}}, true},
		"one of some values":                            {ask("app", "In", "db", "web"), true},
		"none of some values":                           {ask("app", "In", "db"), false},
		"in some values without the label":              {ask("no", "In", ""), false},
		"not in some values":                            {ask("app", "NotIn", "db"), true},
		"not in values that it has":                     {ask("app", "NotIn", "web"), false},
		"not in some values without the label":          {ask("no", "NotIn", "web"), true},
		"exists":                                        {ask("empty", "Exists"), true},
		"exists without the label":                      {ask("no", "Exists"), false},
		"does not exist":                                {ask("no", "DoesNotExist"), true},
		"does not exist with the label":                 {ask("app", "DoesNotExist"), false},
		"an operator that nobody knows":                 {ask("app", "Resembles", "web"), false},
		"all that is asked": {Selector{
			MatchLabels:      map[string]string{"app": "web"},
			MatchExpressions: []Requirement{{"app", "Exists", nil}, {"no", "Exists", nil}},
		}, false},
	} {
		if got := c.selector.Matches(labels); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
