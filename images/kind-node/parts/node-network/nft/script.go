package nft

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Name is the table's.
const Name = "inet node-network"

// What every packet meets. A pod's end of the line is a veth, and nobody else's is.
//
// A pod whose address is in no map is one that nothing is known about yet: it
// gets nothing through, nor does one with another's address, nor IPv6. The node itself is not asked: its kubelet probes its
// pods. Service addresses have become pods' addresses by now, and sources are
// still what they were.
const base = `
add chain TABLE forward { type filter hook forward priority filter; policy accept; }
add chain TABLE input { type filter hook input priority filter; policy accept; }
add chain TABLE from_pod
add chain TABLE to_pod
add rule TABLE forward ct state established,related accept
add rule TABLE forward iifname "veth*" jump from_pod
add rule TABLE forward oifname "veth*" jump to_pod
add rule TABLE input ct state established,related accept
add rule TABLE input iifname "veth*" jump from_pod
add rule TABLE from_pod fib saddr . iif oif missing counter drop
add rule TABLE from_pod ip saddr vmap @egress
add rule TABLE from_pod counter drop
add rule TABLE to_pod ip daddr vmap @ingress
add rule TABLE to_pod counter drop
`

// Whole replaces whatever there is by a table, at once.
func Whole(t Table) string {
	// Adding first, so that there is something to delete.
	begin := "add table TABLE\ndelete table TABLE\nadd table TABLE\n"
	return inTable(begin) + Change(Table{}, t) + inTable(strings.TrimPrefix(base, "\n"))
}

// Change makes one table of another; nothing, if they are the same.
func Change(old, new Table) string {
	var s script
	for _, name := range names(new.sets) {
		if !old.HasSet(name) {
			s.say("add %s TABLE %s { type %s; }", new.sets[name].sort(), name, new.sets[name].kind)
		}
	}
	for _, name := range names(new.chains) {
		if !old.HasChain(name) {
			s.say("add chain TABLE %s", name)
		}
	}
	for _, name := range names(new.chains) {
		if slices.Equal(old.chains[name], new.chains[name]) {
			continue
		}
		if old.HasChain(name) {
			s.say("flush chain TABLE %s", name)
		}
		for _, rule := range new.chains[name] {
			s.say("add rule TABLE %s %s", name, rule)
		}
	}
	for _, name := range names(new.sets) {
		s.elements("delete", name, missing(old.sets[name], new.sets[name]), false)
		s.elements("add", name, missing(new.sets[name], old.sets[name]), true)
	}
	for _, name := range names(old.chains) {
		if !new.HasChain(name) {
			s.say("flush chain TABLE %s", name)
			s.say("delete chain TABLE %s", name)
		}
	}
	for _, name := range names(old.sets) {
		if !new.HasSet(name) {
			s.say("delete set TABLE %s", name)
		}
	}
	return inTable(s.String())
}

type script struct{ strings.Builder }

func (s *script) say(format string, words ...any) {
	fmt.Fprintf(s, format+"\n", words...)
}

func (s *script) elements(verb, name string, elements map[string]string, values bool) {
	if len(elements) == 0 {
		return
	}
	var words []string
	for _, key := range names(elements) {
		if value := elements[key]; values && value != "" {
			key += " : " + value
		}
		words = append(words, key)
	}
	s.say("%s element TABLE %s { %s }", verb, name, strings.Join(words, ", "))
}

func (s set) sort() string {
	if s.kind == Verdicts {
		return "map"
	}
	return "set"
}

// missing are the elements of one that another lacks, or has with another value.
func missing(of, in set) map[string]string {
	found := map[string]string{}
	for key, value := range of.elements {
		if has, there := in.elements[key]; !there || has != value {
			found[key] = value
		}
	}
	return found
}

func names[T any](of map[string]T) []string {
	return slices.Sorted(maps.Keys(of))
}

func inTable(text string) string {
	return strings.ReplaceAll(text, "TABLE", Name)
}
