package policy

import (
	"encoding/json"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcage.dev/kind-node/node-network/nettest"
	"rollcage.dev/kind-node/node-network/nft"
)

const (
	boxAddress, otherAddress, freeAddress = "10.77.0.1", "10.77.0.2", "10.77.0.3"
	serviceAddress                        = "10.96.0.9"
)

// A sandbox and another one under the same policy, a pod that no policy
// chooses, and somebody outside: as real as the kernel makes them.
type stage struct {
	nettest.Net
	t    *testing.T
	told nft.Table
	seen Seen
}

func onStage(t *testing.T) *stage {
	s := &stage{Net: nettest.New(t), t: t}
	s.seen = Seen{Node: "node", Namespaces: map[string]map[string]string{"boxes": {}, "free": {"kind": "free"}},
		Here: map[netip.Addr]Pod{}}
	for name, address := range map[string]string{"box": boxAddress, "other": otherAddress, "free": freeAddress} {
		s.Pod(name, address)
		for _, network := range []string{"tcp4", "udp4"} {
			s.Listen(name, network, 80)
			s.Listen(name, network, 90)
		}
	}
	s.Listen(nettest.Outside, "tcp4", 80)
	s.Listen(nettest.Outside, "udp4", 53)
	s.Listen("node", "tcp", 10250)
	if err := s.Kernel().Load(`table ip kube-proxy { chain prerouting { type nat hook prerouting priority dstnat;
		ip daddr ` + serviceAddress + ` dnat to ` + otherAddress + `; }; }`); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) knows(names ...string) {
	all := map[string]Pod{
		"box":   {UID: "box", Namespace: "boxes", Node: "node", Labels: map[string]string{"app": "box"}},
		"other": {UID: "other", Namespace: "boxes", Node: "node", Ports: []NamedPort{{"web", "TCP", 80}}},
		"free":  {UID: "free", Namespace: "free", Node: "node"},
	}
	at := map[string]string{"box": boxAddress, "other": otherAddress, "free": freeAddress}
	for _, name := range names {
		s.seen.Here[netip.MustParseAddr(at[name])] = all[name]
	}
	s.enforce()
}

func (s *stage) policies(specs ...string) {
	s.seen.Policies = nil
	for i, spec := range specs {
		p := Policy{Namespace: "boxes", Name: string(rune('a' + i))}
		if err := json.Unmarshal([]byte(spec), &p.Spec); err != nil {
			s.t.Fatal(err)
		}
		s.seen.Policies = append(s.seen.Policies, p)
	}
	s.enforce()
}

// enforce changes what is there, as the agent does.
func (s *stage) enforce() {
	s.t.Helper()
	wanted := Decide(s.seen)
	script := nft.Change(s.told, wanted)
	if !s.told.HasSet(nft.EgressMap) {
		script = nft.Whole(wanted)
	}
	if err := s.Kernel().Load(script); err != nil {
		s.t.Fatalf("%v\n%s", err, script)
	}
	s.told = wanted
}

type traffic struct{ from, network, to string }

func (s *stage) reach(all ...traffic) {
	s.t.Helper()
	for _, one := range all {
		if !s.Reaches(one.from, one.network, one.to) {
			s.t.Errorf("stopped: %v", one)
		}
	}
}

func (s *stage) stopped(all ...traffic) {
	s.t.Helper()
	var tries sync.WaitGroup
	for _, one := range all {
		tries.Go(func() {
			if !s.Stopped(one.from, one.network, one.to) {
				s.t.Errorf("got through: %v", one)
			}
		})
	}
	tries.Wait()
}

var (
	boxOut = []traffic{
		{"box", "tcp4", otherAddress + ":80"},
		{"box", "udp4", otherAddress + ":80"},
		{"box", "tcp4", serviceAddress + ":80"},
		{"box", "tcp4", freeAddress + ":80"},
		{"box", "tcp4", nettest.OutsideAddress + ":80"},
		{"box", "udp4", nettest.OutsideAddress + ":53"},
		{"box", "tcp4", nettest.NodeAddress + ":10250"},
		{"box", "tcp4", "10.77.0.254:10250"},
	}
	boxIn = []traffic{
		{"other", "tcp4", boxAddress + ":80"},
		{"free", "udp4", boxAddress + ":80"},
		{nettest.Outside, "tcp4", boxAddress + ":80"},
	}
	fromTheNode = traffic{"node", "tcp4", boxAddress + ":80"}
)

const denyAll = `{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}`

func TestAPodThatNobodyKnowsGetsNothingThrough(t *testing.T) {
	s := onStage(t)
	s.reach(boxOut...) // before there is a firewall, so that the rest means something
	s.knows("other", "free")

	s.stopped(boxOut...)
	s.stopped(boxIn...)

	s.knows("box")

	s.reach(boxOut...)
	s.reach(boxIn...)
}

func TestNothingReachesOrLeavesADeniedPodButItsNode(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	s.policies(denyAll)

	s.stopped(boxOut...)
	s.stopped(boxIn...)
	s.stopped(traffic{"free", "tcp4", serviceAddress + ":80"})
	s.reach(fromTheNode, traffic{"free", "tcp4", nettest.OutsideAddress + ":80"})
}

func TestAnswersToWhoMayAskGetBack(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	s.policies(denyAll, `{"podSelector": {"matchLabels": {"app": "box"}}, "ingress": [{
		"from": [{"namespaceSelector": {"matchLabels": {"kind": "free"}}}], "ports": [{"port": 80}]}]}`)

	s.reach(traffic{"free", "tcp4", boxAddress + ":80"})
	s.stopped(
		traffic{"free", "tcp4", boxAddress + ":90"},
		traffic{"free", "udp4", boxAddress + ":80"},
		traffic{"free", "tcp4", otherAddress + ":80"},
		traffic{"other", "tcp4", boxAddress + ":80"},
		traffic{nettest.Outside, "tcp4", boxAddress + ":80"},
	)
	s.stopped(boxOut...)
}

func TestAServiceIsJudgedAsThePodBehindIt(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	s.policies(`{"podSelector": {"matchLabels": {"app": "box"}}, "policyTypes": ["Egress"],
		"egress": [{"to": [{"podSelector": {}}], "ports": [{"port": "web"}]}]}`)

	s.reach(traffic{"box", "tcp4", serviceAddress + ":80"}, traffic{"box", "tcp4", otherAddress + ":80"})
	s.stopped(traffic{"box", "tcp4", serviceAddress + ":90"}, traffic{"box", "tcp4", freeAddress + ":80"})
}

func TestBlocksRangesAndProtocols(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	s.policies(`{"podSelector": {}, "policyTypes": ["Egress"], "egress": [
		{"to": [{"ipBlock": {"cidr": "10.77.0.0/24", "except": ["10.77.0.2/32", "10.77.0.254/32"]}}],
		 "ports": [{"port": 79, "endPort": 81}]},
		{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"protocol": "UDP"}]}]}`)

	s.reach(
		traffic{"box", "tcp4", freeAddress + ":80"},
		traffic{"box", "udp4", nettest.OutsideAddress + ":53"},
	)
	s.stopped(
		traffic{"box", "tcp4", freeAddress + ":90"},
		traffic{"box", "tcp4", otherAddress + ":80"},
		traffic{"box", "tcp4", nettest.OutsideAddress + ":80"},
		traffic{"box", "tcp4", nettest.NodeAddress + ":10250"},
	)
}

func TestWhatWasBegunGoesOnAndNothingNewBegins(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	connection := s.Dial("box", "tcp4", freeAddress+":80")
	if !nettest.Alive(connection, time.Minute) {
		t.Fatal("not even before")
	}

	s.policies(denyAll)

	if !nettest.Alive(connection, time.Minute) {
		t.Error("cut")
	}
	s.stopped(traffic{"box", "tcp4", freeAddress + ":80"})

	s.policies()
	s.reach(traffic{"box", "tcp4", freeAddress + ":80"})
}

func TestIPv6LeavesNoPodWhateverPoliciesSay(t *testing.T) {
	s := onStage(t)
	s.Listen("node", "tcp6", 443)
	link := s.On("node", "ip", "-6", "-o", "addr", "show", "dev", "veth-box", "scope", "link")
	address := strings.Split(strings.Fields(link)[3], "/")[0]
	kubelet := traffic{"box", "tcp6", "[" + address + "%eth0]:443"}
	// A new link's address is of use only after a while.
	for !s.Reaches(kubelet.from, kubelet.network, kubelet.to) {
		t.Log("not yet")
	}

	s.knows("box", "other", "free")

	s.stopped(kubelet)
}

func TestNobodyLeavesUnderAnothersAddress(t *testing.T) {
	s := onStage(t)
	heard := s.Listen(nettest.Outside, "udp4", 99)
	to := nettest.OutsideAddress + ":99"
	s.knows("box", "other", "free")
	s.policies(denyAll)
	s.On("box", "ip", "addr", "add", freeAddress+"/32", "dev", "lo")

	s.SendAs("box", freeAddress+":1234", to)
	s.SendAs("free", freeAddress+":1235", to)

	s.reach(traffic{"free", "udp4", to}) // by now whatever was sent before has come
	if heard() != 2 {
		t.Errorf("%d came", heard())
	}
}

func TestAReusedAddressInheritsNoConnection(t *testing.T) {
	s := onStage(t)
	s.knows("box", "other", "free")
	asked := s.Dial("box", "udp4", nettest.OutsideAddress+":53")
	served := s.Dial("free", "tcp4", boxAddress+":80")
	if !nettest.Alive(asked, time.Minute) || !nettest.Alive(served, time.Minute) {
		t.Fatal("not even before")
	}
	s.policies(denyAll)
	if !nettest.Alive(asked, time.Minute) || !nettest.Alive(served, time.Minute) {
		t.Fatal("the test shows nothing: what was begun does not go on")
	}

	if err := s.Kernel().ForgetConnections(boxAddress); err != nil {
		t.Fatal(err)
	}

	if nettest.Alive(asked, time.Second) || nettest.Alive(served, time.Second) {
		t.Error("somebody goes on where another pod has stopped")
	}
	if err := s.Kernel().ForgetConnections(boxAddress); err != nil {
		t.Errorf("with nothing to forget: %v", err)
	}
}
