package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"rollcage.dev/kind-node/node-network/nettest"
	"rollcage.dev/kind-node/node-network/nft"
)

// many is a node full of pods under a policy that names each of them as a peer.
func many(pods int) Seen {
	p := Policy{Namespace: "boxes", Name: "p"}
	spec := `{"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [{"podSelector": {}}]}]}`
	if err := json.Unmarshal([]byte(spec), &p.Spec); err != nil {
		panic(err)
	}
	s := Seen{Node: "node", Namespaces: map[string]map[string]string{"boxes": {}}, Policies: []Policy{p},
		Here: map[netip.Addr]Pod{}}
	for i := range pods {
		s.Here[netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})] = Pod{
			UID: fmt.Sprint(i), Namespace: "boxes", Labels: map[string]string{"app": "box", "number": fmt.Sprint(i)}}
	}
	return s
}

func TestAPodMoreAddsNoRule(t *testing.T) {
	change := nft.Change(Decide(many(700)), Decide(many(701)))

	want := "add element inet node-network egress { 10.1.2.188 : goto egress_e9f3 }"
	if len(change) > 3*2*len(want) {
		t.Errorf("one pod more takes %d bytes:\n%s", len(change), change)
	}
}

func BenchmarkDecideFor700Pods(b *testing.B) {
	s := many(700)
	for b.Loop() {
		Decide(s)
	}
}

func BenchmarkTellTheKernelOfAPodMore(b *testing.B) {
	n := nettest.New(b)
	old, new := Decide(many(700)), Decide(many(701))
	if err := n.Kernel().Load(nft.Whole(old)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := n.Kernel().Load(nft.Change(old, new)); err != nil {
			b.Fatal(err)
		}
		if err := n.Kernel().Load(nft.Change(new, old)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTellTheKernelOf700Pods(b *testing.B) {
	n := nettest.New(b)
	whole := nft.Whole(Decide(many(700)))
	for b.Loop() {
		if err := n.Kernel().Load(whole); err != nil {
			b.Fatal(err)
		}
	}
}
