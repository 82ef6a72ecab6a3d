package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcage.dev/kind-node/node-network/kubetest"
)

const (
	here    = "10.0.1.1"
	denyAll = `{"metadata": {"namespace": "boxes", "name": "deny"},
		"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}`
)

// deafKernel remembers what it was told; what a real one makes of that is tested elsewhere.
type deafKernel struct {
	mu      sync.Mutex
	told    []string
	forgot  []string
	refuses int
}

func (k *deafKernel) Load(script string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuses > 0 {
		k.refuses--
		return errors.New("not now")
	}
	k.told = append(k.told, script)
	return nil
}

func (k *deafKernel) ForgetConnections(address string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgot = append(k.forgot, address)
	return nil
}

func (k *deafKernel) heard() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.told...)
}

type stage struct {
	t      *testing.T
	server *kubetest.Server
	kernel *deafKernel
	agent  *Agent
}

func onStage(t *testing.T) stage {
	t.Helper()
	server, client := kubetest.New(t)
	server.Put(namespacesPath, "boxes", `{"metadata": {"name": "boxes"}}`)
	kernel := &deafKernel{}
	s := stage{t, server, kernel, New("node", client, kernel, t.TempDir())}
	s.start()
	return s
}

func (s stage) start() {
	s.t.Helper()
	if err := s.agent.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s stage) pod(uid string, more ...string) {
	s.server.Put(podsPath, uid, fmt.Sprintf(`{"metadata": {"uid": %[1]q, "namespace": "boxes", "name": %[1]q},
		"spec": {"nodeName": "node"}, "status": {"phase": "Pending"%[2]s}}`, uid, strings.Join(more, "")))
}

// attach begins to attach a pod, and returns where its end will be told.
func (s stage) attach(ctx context.Context, uid string) chan error {
	done := make(chan error, 1)
	go func() {
		done <- s.agent.attach(ctx, Attachment{Container: "c-" + uid, UID: uid, Address: netip.MustParseAddr(here)})
	}()
	return done
}

func (s stage) attached(uid string) {
	s.t.Helper()
	if err := <-s.attach(s.t.Context(), uid); err != nil {
		s.t.Fatal(err)
	}
}

// until waits until the kernel was told something in one of its scripts.
func (s stage) until(words string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(strings.Join(s.kernel.heard(), ""), words); {
		if time.Now().After(deadline) {
			s.t.Fatalf("never told %q:\n%s", words, strings.Join(s.kernel.heard(), "\n"))
		}
		time.Sleep(time.Millisecond)
	}
}

func (s stage) last() string {
	all := s.kernel.heard()
	return all[len(all)-1]
}

func TestAPodIsAttachedOnceItsPoliciesAreEnforced(t *testing.T) {
	s := onStage(t)
	s.server.Put(policiesPath, "deny", denyAll)
	s.pod("one")

	s.attached("one")

	if told := strings.Join(s.kernel.heard(), ""); !strings.Contains(told, "egress { "+here+" : goto egress_") ||
		!strings.Contains(told, "ingress { "+here+" : goto ingress_") {
		t.Error(told)
	}
}

func TestAnAddressThatWasUsedBeforeInheritsNoConnection(t *testing.T) {
	s := onStage(t)
	s.pod("one")
	s.attached("one")
	if len(s.kernel.forgot) != 0 {
		t.Errorf("looked for connections of %v, which never had any", s.kernel.forgot)
	}
	if err := s.agent.detach("c-one"); err != nil {
		t.Fatal(err)
	}
	again := New("node", s.agent.client, s.kernel, s.agent.records.directory)
	if err := again.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.agent = again
	s.pod("two")

	s.attached("two")

	if len(s.kernel.forgot) != 1 || s.kernel.forgot[0] != here {
		t.Errorf("forgot the connections of %v", s.kernel.forgot)
	}
}

func TestAPolicyOlderThanThePodIsWaitedFor(t *testing.T) {
	s := onStage(t)
	s.server.Hold(policiesPath, true)
	s.server.Put(policiesPath, "deny", denyAll)
	s.pod("one")
	done := s.attach(t.Context(), "one")
	for s.server.Listed(policiesPath) < 3 { // once at the start; each look at what is still to come is one more
		time.Sleep(time.Millisecond)
	}
	if told := strings.Join(s.kernel.heard(), ""); strings.Contains(told, here) {
		t.Fatalf("told before the policy was heard of:\n%s", told)
	}

	s.server.Hold(policiesPath, false)

	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.last(), here+" : goto ") {
		t.Error(s.last())
	}
}

func TestAPodThatNobodyKnowsIsNotAttached(t *testing.T) {
	s := onStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.attach(ctx, "nobody")
	s.pod("other")
	s.server.Put(policiesPath, "deny", denyAll)

	cancel()

	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if told := strings.Join(s.kernel.heard(), ""); strings.Contains(told, here) {
		t.Error(told)
	}
}

func TestAnAddressIsClosedAtOnceWhenAnotherPodGetsIt(t *testing.T) {
	s := onStage(t)
	s.pod("one")
	s.attached("one")

	done := s.attach(t.Context(), "two")
	s.until("delete element inet node-network egress { " + here + " }")
	s.server.Put(policiesPath, "deny", denyAll)
	s.pod("two")

	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.last(), here+" : goto ") {
		t.Error(s.last())
	}
	if known, err := s.agent.records.all(); err != nil || len(known) != 1 || known[0].UID != "two" {
		t.Errorf("remembers %v, %v", known, err)
	}
	// The first one goes late, and takes nothing with it.
	if err := s.agent.detach("c-one"); err != nil {
		t.Fatal(err)
	}
	if seen, _ := s.agent.state.seen(); seen.Here[netip.MustParseAddr(here)].UID != "two" {
		t.Error("the address was taken from the second one")
	}
}

func TestAPodWhoseObjectIsGoneKeepsItsPoliciesUntilItsAddressIsGivenBack(t *testing.T) {
	s := onStage(t)
	s.pod("one")
	s.attached("one")

	s.server.Remove(podsPath, "one")
	s.server.Put(policiesPath, "deny", denyAll)
	s.until(here + " : goto ")

	if err := s.agent.detach("c-one"); err != nil {
		t.Fatal(err)
	}
	s.until("delete element inet node-network egress { " + here + " }")
	s.agent.state.mu.Lock()
	defer s.agent.state.mu.Unlock()
	if len(s.agent.state.vetted) != 0 {
		t.Errorf("still remembers %v", s.agent.state.vetted)
	}
}

func TestARestartedAgentKnowsItsPods(t *testing.T) {
	s := onStage(t)
	s.pod("one")
	s.attached("one")
	directory := s.agent.records.directory

	again := s
	again.kernel = &deafKernel{}
	again.agent = New("node", s.agent.client, again.kernel, directory)
	again.start()

	again.until(here + " : return")
	if whole := again.kernel.heard()[0]; !strings.HasPrefix(whole, "add table inet node-network\ndelete table") {
		t.Error(whole)
	}
}

func TestAfterARefusalTheWholeTableIsToldAgain(t *testing.T) {
	s := onStage(t)
	s.kernel.mu.Lock()
	s.kernel.refuses = 1
	s.kernel.mu.Unlock()
	s.pod("one")

	s.attached("one")

	if !strings.HasPrefix(s.last(), "add table inet node-network\ndelete table") || !strings.Contains(s.last(), here) {
		t.Error(s.last())
	}
}

func TestWhatPoliciesDoNotAskAboutIsNotTold(t *testing.T) {
	s := onStage(t)
	s.pod("one")
	s.attached("one")
	before := len(s.kernel.heard())

	s.pod("one", `, "startTime": "2026-01-01T00:00:00Z"`)
	s.server.Put(policiesPath, "deny", denyAll)
	s.until(here + " : goto ")

	if after := len(s.kernel.heard()); after != before+1 {
		t.Errorf("%d scripts", after-before)
	}
}
