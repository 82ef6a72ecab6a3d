package fence

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTheFirstRolloutKeepsTheSandbox(t *testing.T) {
	var f Fence
	if f.Bound() != nil || !f.Admits("a") {
		t.Fatal("a new fence is not free")
	}
	if !f.Bind("a") || !f.Bind("a") {
		t.Fatal("the first rollout was refused")
	}
	if f.Bind("b") || f.Admits("b") {
		t.Fatal("a second rollout was let in")
	}
	if *f.Bound() != "a" {
		t.Fatalf("bound to %q", *f.Bound())
	}
}

func TestOfManyRacingRolloutsOneWins(t *testing.T) {
	var f Fence
	var winners atomic.Int32
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			if f.Bind(fmt.Sprint(i)) {
				winners.Add(1)
			}
		})
	}
	group.Wait()
	if winners.Load() != 1 {
		t.Fatalf("%d rollouts were bound", winners.Load())
	}
}
