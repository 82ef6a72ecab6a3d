// Package nft says to the kernel, in nft's own language, what shall be let
// through: a whole table, or only what has changed in it. One script is one
// transaction. What goes into the table is decided elsewhere.
package nft

import (
	"maps"
	"slices"
)

const (
	// EgressMap and IngressMap lead from a pod's address to what may leave it and reach it.
	EgressMap, IngressMap = "egress", "ingress"

	// Verdicts, Addresses and Ports are the kinds of maps and sets.
	Verdicts  = "ipv4_addr : verdict"
	Addresses = "ipv4_addr"
	Ports     = "ipv4_addr . inet_proto . inet_service"
)

// Table is what shall be let through.
type Table struct {
	// Elements of each set or map; those of a set have an empty value.
	sets map[string]set
	// Rules of each chain that a map leads to.
	chains map[string][]string
}

type set struct {
	kind     string
	elements map[string]string
}

// New is a table that lets nothing through.
func New() Table {
	t := Table{map[string]set{}, map[string][]string{}}
	t.AddSet(EgressMap, Verdicts)
	t.AddSet(IngressMap, Verdicts)
	return t
}

// AddSet makes an empty set.
func (t Table) AddSet(name, kind string) {
	t.sets[name] = set{kind, map[string]string{}}
}

// HasSet tells whether there is one.
func (t Table) HasSet(name string) bool {
	_, there := t.sets[name]
	return there
}

// Add puts an element into a set, made if need be.
func (t Table) Add(name, kind, key, value string) {
	if !t.HasSet(name) {
		t.AddSet(name, kind)
	}
	t.sets[name].elements[key] = value
}

// AddChain makes a chain.
func (t Table) AddChain(name string, rules []string) {
	t.chains[name] = rules
}

// HasChain tells whether there is one.
func (t Table) HasChain(name string) bool {
	_, there := t.chains[name]
	return there
}

// Get returns an element's value.
func (t Table) Get(name, key string) (string, bool) {
	value, there := t.sets[name].elements[key]
	return value, there
}

// Elements returns what is in a set, in order.
func (t Table) Elements(name string) []string {
	return slices.Sorted(maps.Keys(t.sets[name].elements))
}

// Rules returns a chain's.
func (t Table) Rules(chain string) []string {
	return t.chains[chain]
}
