package policy

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"rollcage.dev/kind-node/node-network/nft"
)

// Seen is what is known of the cluster from one node.
type Seen struct {
	// Node is the one that is decided for.
	Node       string
	Pods       []Pod
	Namespaces map[string]map[string]string
	Policies   []Policy
	// Here are the node's own pods by the address that they really have.
	Here map[netip.Addr]Pod
}

type direction int

const (
	ingress direction = iota
	egress
)

func (d direction) String() string {
	return [...]string{"Ingress", "Egress"}[d]
}

// far is the header field with the other end's address.
func (d direction) far() string {
	return [...]string{"ip saddr", "ip daddr"}[d]
}

// Decide says what the node's kernel shall let through.
//
// Pods that are chosen by the same policies share a chain, and everybody that
// a policy calls a peer is in a set: a packet costs some look-ups, however
// many pods there are.
func Decide(seen Seen) nft.Table {
	d := decision{seen: seen, owners: owners(seen), table: nft.New()}
	d.known = slices.SortedFunc(maps.Keys(d.owners), netip.Addr.Compare)
	policies := slices.SortedFunc(slices.Values(seen.Policies), func(a, b Policy) int {
		return strings.Compare(a.id(), b.id())
	})
	for address, pod := range seen.Here {
		d.table.Add(nft.EgressMap, nft.Verdicts, address.String(), d.verdict(egress, pod, policies))
		d.table.Add(nft.IngressMap, nft.Verdicts, address.String(), d.verdict(ingress, pod, policies))
	}
	return d.table
}

// owners says which pod has an address. One that two pods of other nodes lay
// claim to, because somebody's news is old, belongs to nobody until that is over.
func owners(seen Seen) map[netip.Addr]Pod {
	found, disputed := map[netip.Addr]Pod{}, map[netip.Addr]bool{}
	for _, pod := range seen.Pods {
		if pod.Node == seen.Node || pod.HostNetwork || pod.Ended {
			continue
		}
		for _, address := range pod.Addresses {
			if _, taken := found[address]; taken {
				disputed[address] = true
			}
			found[address] = pod
		}
	}
	for address := range disputed {
		delete(found, address)
	}
	maps.Copy(found, seen.Here)
	return found
}

type decision struct {
	seen   Seen
	owners map[netip.Addr]Pod
	known  []netip.Addr
	table  nft.Table
}

// verdict is where packets of a pod go in one direction: on, where no policy chooses it, else into a chain.
func (d *decision) verdict(way direction, pod Pod, policies []Policy) string {
	var chosen []rule
	names := []string{way.String()}
	for _, p := range policies {
		rules, speaks := p.rules(way)
		if !speaks || p.Namespace != pod.Namespace || !p.Spec.PodSelector.Matches(pod.Labels) {
			continue
		}
		names, chosen = append(names, p.id()), append(chosen, rules...)
	}
	if len(names) == 1 {
		return "return"
	}
	chain := strings.ToLower(way.String()) + "_" + hash(names...)
	if !d.table.HasChain(chain) {
		var lines []string
		for _, r := range chosen {
			lines = append(lines, d.lines(way, r, pod.Namespace)...)
		}
		d.table.AddChain(chain, append(lines, "counter drop"))
	}
	return "goto " + chain
}

func (p Policy) id() string {
	return p.Namespace + "/" + p.Name
}

func hash(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return fmt.Sprintf("%x", sum[:6])
}
