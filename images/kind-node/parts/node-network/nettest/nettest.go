// Package nettest makes a node with pods of network namespaces, for tests that
// want to see what the kernel does with a packet. It needs root, ip, nft and conntrack.
package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"rollcage.dev/kind-node/node-network/kernel"
)

const (
	// Outside is somebody beyond the node, and NodeAddress the node as they see it.
	Outside, OutsideAddress, NodeAddress = "out", "192.0.2.2", "192.0.2.1"

	gateway = "10.77.0.254"
)

// Net is a node and those who are connected to it.
type Net struct {
	t      testing.TB
	prefix string
}

// New makes a node that has nobody but somebody outside.
func New(t testing.TB) Net {
	t.Helper()
	if missing := missing(); missing != "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	n := Net{t, fmt.Sprintf("nn%d-", os.Getpid())}
	n.add("node")
	n.On("node", "sysctl", "-qw", "net.ipv4.ip_forward=1")
	n.add(Outside)
	n.link(Outside, "eth1")
	n.On("node", "ip", "addr", "add", NodeAddress+"/24", "dev", "eth1")
	n.On(Outside, "ip", "addr", "add", OutsideAddress+"/24", "dev", "eth0")
	n.On(Outside, "ip", "route", "add", "default", "via", NodeAddress)
	return n
}

func missing() string {
	if os.Geteuid() != 0 {
		return "needs root"
	}
	for _, program := range []string{"ip", "nft", "conntrack", "sysctl"} {
		if _, err := exec.LookPath(program); err != nil {
			return "needs " + program
		}
	}
	return ""
}

// Pod connects a pod as the ptp plug-in does.
func (n Net) Pod(name, address string) {
	n.t.Helper()
	n.add(name)
	n.link(name, "veth-"+name)
	n.On("node", "ip", "addr", "add", gateway+"/32", "dev", "veth-"+name)
	n.On("node", "ip", "route", "add", address, "dev", "veth-"+name)
	n.On(name, "ip", "addr", "add", address+"/32", "dev", "eth0")
	n.On(name, "ip", "route", "add", gateway, "dev", "eth0")
	n.On(name, "ip", "route", "add", "default", "via", gateway)
}

func (n Net) add(name string) {
	n.t.Helper()
	run(n.t, "", "ip", "netns", "add", n.prefix+name)
	n.t.Cleanup(func() { run(n.t, "", "ip", "netns", "del", n.prefix+name) })
	n.On(name, "ip", "link", "set", "lo", "up")
}

func (n Net) link(name, end string) {
	n.t.Helper()
	n.On("node", "ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", n.prefix+name)
	n.On("node", "ip", "link", "set", end, "up")
	n.On(name, "ip", "link", "set", "eth0", "up")
}

// On runs a program on the node or one of the others, and returns what it printed.
func (n Net) On(name string, command ...string) string {
	n.t.Helper()
	return run(n.t, "", append([]string{"ip", "netns", "exec", n.prefix + name}, command...)...)
}

// Kernel is the node's.
func (n Net) Kernel() kernel.Kernel {
	return kernel.Kernel{Run: func(stdin, program string, args ...string) error {
		_, err := try(stdin, append([]string{"ip", "netns", "exec", n.prefix + "node", program}, args...)...)
		return err
	}}
}

func run(t testing.TB, stdin string, command ...string) string {
	t.Helper()
	text, err := try(stdin, command...)
	check(t, err)
	return text
}

func try(stdin string, command ...string) (string, error) {
	program := exec.Command(command[0], command[1:]...)
	program.Stdin = strings.NewReader(stdin)
	text, err := program.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%v: %w: %s", command, err, text)
	}
	return string(text), err
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
