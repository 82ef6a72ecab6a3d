package kube_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"rollcage.dev/kind-node/node-network/kube"
	"rollcage.dev/kind-node/node-network/kubetest"
)

const path = "/api/v1/things"

type thing struct{ Metadata struct{ Name string } }

// told is a follower that remembers.
type told struct {
	mu  sync.Mutex
	now map[string]bool
}

func (f *told) Replace(all []thing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = map[string]bool{}
	for _, one := range all {
		f.now[one.Metadata.Name] = true
	}
}

func (f *told) Put(one thing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[one.Metadata.Name] = true
}

func (f *told) Remove(one thing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.now, one.Metadata.Name)
}

func (f *told) until(t *testing.T, names ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		now := slices.Sorted(maps.Keys(f.now))
		f.mu.Unlock()
		if slices.Equal(now, names) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("has %v, not %v", now, names)
		}
	}
}

func named(name string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q}}`, name)
}

func TestAFollowerIsToldWhatThereIsAndWhatHappens(t *testing.T) {
	server, client := kubetest.New(t)
	server.Put(path, "a", named("a"))
	follower := &told{}
	go kube.Follow(t.Context(), client, path, follower)
	follower.until(t, "a")

	server.Put(path, "b", named("b"))
	follower.until(t, "a", "b")

	server.Remove(path, "a")
	follower.until(t, "b")
	if lists := server.Listed(path); lists != 1 {
		t.Errorf("listed %d times", lists)
	}
}

func TestWhatHappenedTooLongAgoIsListedAgain(t *testing.T) {
	server, client := kubetest.New(t)
	server.Put(path, "a", named("a"))
	follower := &told{}
	go kube.Follow(t.Context(), client, path, follower)
	follower.until(t, "a")

	server.Hold(path, true)
	server.Remove(path, "a")
	server.Put(path, "b", named("b"))
	server.Expire()

	follower.until(t, "b")
	server.Hold(path, false)
	server.Put(path, "c", named("c"))
	follower.until(t, "b", "c")
}
