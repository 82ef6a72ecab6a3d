package nft

import (
	"strings"
	"testing"
)

func table(do ...func(Table)) Table {
	t := New()
	for _, one := range do {
		one(t)
	}
	return t
}

func element(set, kind, key, value string) func(Table) {
	return func(t Table) { t.Add(set, kind, key, value) }
}

func chain(name string, rules ...string) func(Table) {
	return func(t Table) { t.AddChain(name, rules) }
}

func TestOnlyWhatChangedIsSaid(t *testing.T) {
	open := element(EgressMap, Verdicts, "10.0.0.1", "return")
	closed := element(EgressMap, Verdicts, "10.0.0.1", "goto a")
	peer := element("p", Addresses, "10.0.0.2", "")
	for name, c := range map[string]struct {
		old, new Table
		want     []string
	}{
		"nothing": {table(open, peer), table(open, peer), nil},
		"a pod more": {table(), table(open),
			[]string{"add element inet node-network egress { 10.0.0.1 : return }"}},
		"a pod less": {table(open), table(),
			[]string{"delete element inet node-network egress { 10.0.0.1 }"}},
		"a pod that is chosen from now on": {table(open), table(closed, chain("a", "counter drop")), []string{
			"add chain inet node-network a",
			"add rule inet node-network a counter drop",
			"delete element inet node-network egress { 10.0.0.1 }",
			"add element inet node-network egress { 10.0.0.1 : goto a }"}},
		"a pod that is chosen no more": {table(closed, peer, chain("a", "ip saddr @p return")), table(open), []string{
			"delete element inet node-network egress { 10.0.0.1 }",
			"add element inet node-network egress { 10.0.0.1 : return }",
			"flush chain inet node-network a",
			"delete chain inet node-network a",
			"delete set inet node-network p"}},
		"a policy with other words": {table(chain("a", "x return", "drop")), table(peer, chain("a", "ip saddr @p return")),
			[]string{
				"add set inet node-network p { type ipv4_addr; }",
				"flush chain inet node-network a",
				"add rule inet node-network a ip saddr @p return",
				"add element inet node-network p { 10.0.0.2 }"}},
	} {
		want := ""
		for _, line := range c.want {
			want += line + "\n"
		}
		if got := Change(c.old, c.new); got != want {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

func TestTheWholeTableReplacesWhateverThereIs(t *testing.T) {
	got := Whole(table())

	begin := "add table inet node-network\ndelete table inet node-network\nadd table inet node-network\n"
	if !strings.HasPrefix(got, begin) || strings.Contains(got, "TABLE") {
		t.Error(got)
	}
}
