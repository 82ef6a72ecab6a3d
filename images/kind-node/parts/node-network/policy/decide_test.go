package policy

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"rollcage.dev/kind-node/node-network/nft"
)

// Two nodes: the web server and its neighbour are here, the others there.
var (
	web       = Pod{UID: "web", Namespace: "a", Node: "here", Labels: map[string]string{"app": "web"}}
	neighbour = Pod{UID: "neighbour", Namespace: "b", Node: "here", Labels: map[string]string{"app": "web"}}
	client    = Pod{UID: "client", Namespace: "a", Node: "there", Labels: map[string]string{"app": "client"},
		Addresses: []netip.Addr{at("10.0.2.1")}, Ports: []NamedPort{{"http", "TCP", 8080}, {"http", "UDP", 8081}}}
	stranger = Pod{UID: "stranger", Namespace: "c", Node: "there", Labels: map[string]string{"app": "client"},
		Addresses: []netip.Addr{at("10.0.2.2")}}
)

func at(text string) netip.Addr { return netip.MustParseAddr(text) }

func seen(policies ...string) Seen {
	s := Seen{
		Node:       "here",
		Pods:       []Pod{web, neighbour, client, stranger},
		Namespaces: map[string]map[string]string{"a": {"team": "one"}, "b": {"team": "one"}, "c": {}},
		Here:       map[netip.Addr]Pod{at("10.0.1.1"): web, at("10.0.1.2"): neighbour},
	}
	for i, spec := range policies {
		p := Policy{Namespace: "a", Name: string(rune('p' + i))}
		if err := json.Unmarshal([]byte(spec), &p.Spec); err != nil {
			panic(err)
		}
		s.Policies = append(s.Policies, p)
	}
	return s
}

// shown is what the web server's packets meet, with every set's elements in place of its name.
func shown(t *testing.T, table nft.Table, direction string) []string {
	t.Helper()
	verdict, there := table.Get(direction, "10.0.1.1")
	if !there {
		t.Fatal("the pod is not known")
	}
	chain, chosen := strings.CutPrefix(verdict, "goto ")
	if !chosen {
		return []string{verdict}
	}
	var lines []string
	for _, rule := range table.Rules(chain) {
		if before, set, found := strings.Cut(rule, "@"); found {
			name, after, _ := strings.Cut(set, " ")
			rule = before + "{" + strings.Join(table.Elements(name), ", ") + "} " + after
		}
		lines = append(lines, rule)
	}
	return lines
}

func TestWhatPoliciesOpen(t *testing.T) {
	const (
		ingress, egress = "ingress", "egress"
		drop            = "counter drop"
	)
	for name, c := range map[string]struct {
		policies  []string
		direction string
		want      []string
	}{
		"without a policy everything": {nil, ingress, []string{"return"}},
		"a policy for others leaves a pod alone": {
			[]string{`{"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"]}`},
			ingress, []string{"return"}},
		"a policy without rules, nothing": {
			[]string{`{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}`}, egress, []string{drop}},
		"a policy for one direction leaves the other alone": {
			[]string{`{"podSelector": {}, "policyTypes": ["Ingress"]}`}, egress, []string{"return"}},
		"without types a policy is about what comes in": {
			[]string{`{"podSelector": {}}`}, ingress, []string{drop}},
		"and about what goes out only if it has such a rule": {
			[]string{`{"podSelector": {}}`}, egress, []string{"return"}},
		"which it then has": {
			[]string{`{"podSelector": {}, "egress": [{}]}`}, egress, []string{"return", drop}},
		"rules of a direction that the types leave out mean nothing": {
			[]string{`{"podSelector": {}, "policyTypes": ["Ingress"], "egress": [{}]}`}, egress, []string{"return"}},
		"an empty rule opens to everybody": {
			[]string{`{"podSelector": {}, "ingress": [{}]}`}, ingress, []string{"return", drop}},
		"empty lists are as good as none": {
			[]string{`{"podSelector": {}, "ingress": [{"from": [], "ports": []}]}`}, ingress, []string{"return", drop}},
		"pods of the same namespace": {
			[]string{`{"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}`},
			ingress, []string{"ip saddr {10.0.2.1} return", drop}},
		"all pods of chosen namespaces": {
			[]string{`{"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "one"}}}]}]}`},
			ingress, []string{"ip saddr {10.0.1.1, 10.0.1.2, 10.0.2.1} return", drop}},
		"chosen pods of chosen namespaces": {
			[]string{`{"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {},
				"podSelector": {"matchLabels": {"app": "client"}}}]}]}`},
			ingress, []string{"ip saddr {10.0.2.1, 10.0.2.2} return", drop}},
		"two peers, either of them": {
			[]string{`{"podSelector": {}, "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "client"}}},
				{"ipBlock": {"cidr": "192.0.2.7/24"}}]}]}`},
			egress, []string{"ip daddr {10.0.2.1} return", "ip daddr 192.0.2.0/24 return", drop}},
		"a block without some": {
			[]string{`{"podSelector": {}, "egress": [{"to": [{"ipBlock":
				{"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8", "10.1.0.0/16"]}}]}]}`},
			egress, []string{"ip daddr != 10.0.0.0/8 ip daddr != 10.1.0.0/16 return", drop}},
		"a block without all of it is nothing": {
			[]string{`{"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["0.0.0.0/0"]}}]}]}`},
			egress, []string{drop}},
		"a block of IPv6 is nothing here": {
			[]string{`{"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "::/0"}}]}]}`},
			egress, []string{drop}},
		"ports": {
			[]string{`{"podSelector": {}, "ingress": [{"ports": [{"port": 80}, {"protocol": "UDP", "port": 53},
				{"protocol": "SCTP"}, {"port": 1000, "endPort": 2000}]}]}`},
			ingress, []string{
				"tcp dport 80 return", "udp dport 53 return", "meta l4proto sctp return", "tcp dport 1000-2000 return", drop}},
		"every peer with every port": {
			[]string{`{"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}},
				{"ipBlock": {"cidr": "198.51.100.0/24"}}], "ports": [{"port": 80}, {"port": 81}]}]}`},
			ingress, []string{
				"ip saddr 192.0.2.0/24 tcp dport 80 return", "ip saddr 192.0.2.0/24 tcp dport 81 return",
				"ip saddr 198.51.100.0/24 tcp dport 80 return", "ip saddr 198.51.100.0/24 tcp dport 81 return", drop}},
		"a port by its name is whatever the other end calls so": {
			[]string{`{"podSelector": {}, "egress": [{"ports": [{"protocol": "UDP", "port": "http"}]}]}`},
			egress, []string{"ip daddr . meta l4proto . th dport {10.0.2.1 . udp . 8081} return", drop}},
		"a name that nobody has": {
			[]string{`{"podSelector": {}, "ingress": [{"ports": [{"port": "nobody"}]}]}`},
			ingress, []string{"ip daddr . meta l4proto . th dport {} return", drop}},
		"several policies add up": {
			[]string{`{"podSelector": {}}`, `{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": 80}]}]}`,
				`{"podSelector": {}, "ingress": [{"ports": [{"port": 81}]}]}`},
			ingress, []string{"tcp dport 80 return", "tcp dport 81 return", drop}},
	} {
		got := shown(t, Decide(seen(c.policies...)), c.direction)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got  %q\n want %q", name, got, c.want)
		}
	}
}

func TestAPolicyIsForItsOwnNamespace(t *testing.T) {
	table := Decide(seen(`{"podSelector": {}}`))

	if verdict, _ := table.Get(nft.IngressMap, "10.0.1.2"); verdict != "return" {
		t.Errorf("the neighbour in another namespace: %s", verdict)
	}
}

func TestPodsWithTheSamePoliciesShareAChain(t *testing.T) {
	s := seen(`{"podSelector": {}}`)
	twin := web
	twin.UID = "twin"
	s.Here[at("10.0.1.3")] = twin

	table := Decide(s)

	one, _ := table.Get(nft.IngressMap, "10.0.1.1")
	other, _ := table.Get(nft.IngressMap, "10.0.1.3")
	if one != other || one == "return" {
		t.Errorf("%s and %s", one, other)
	}
}

const fromClients = `{"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}`

func TestWhoIsNoPeer(t *testing.T) {
	for name, change := range map[string]func(*Pod){
		"one that has ended":                         func(p *Pod) { p.Ended = true },
		"one with its node's network":                func(p *Pod) { p.HostNetwork = true },
		"one that has no address yet":                func(p *Pod) { p.Addresses = nil },
		"one with other labels":                      func(p *Pod) { p.Labels = nil },
		"one of another namespace":                   func(p *Pod) { p.Namespace = "c" },
		"one of here, with an address on paper only": func(p *Pod) { p.Node = "here" },
	} {
		s := seen(fromClients)
		changed := client
		change(&changed)
		s.Pods[2] = changed

		if got := shown(t, Decide(s), "ingress"); got[0] != "ip saddr {} return" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAnAddressThatTwoLayClaimToIsNobodys(t *testing.T) {
	s := seen(fromClients)
	other := stranger
	other.Addresses = client.Addresses
	s.Pods[3] = other

	if got := shown(t, Decide(s), "ingress"); got[0] != "ip saddr {} return" {
		t.Errorf("%q", got)
	}
}

func TestAnAddressOfHereBelongsToWhomTheNodeGaveIt(t *testing.T) {
	s := seen(fromClients)
	late := client
	late.Addresses = []netip.Addr{at("10.0.1.2")}
	s.Pods[2] = late

	// The neighbour has that address now, and is no client.
	if got := shown(t, Decide(s), "ingress"); got[0] != "ip saddr {} return" {
		t.Errorf("%q", got)
	}
}

func TestAPodOfANamespaceThatNobodyKnowsIsInNoChosenOne(t *testing.T) {
	s := seen(`{"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]}`)
	delete(s.Namespaces, "c")

	if got := shown(t, Decide(s), "ingress"); got[0] != "ip saddr {10.0.1.1, 10.0.1.2, 10.0.2.1} return" {
		t.Errorf("%q", got)
	}
}
