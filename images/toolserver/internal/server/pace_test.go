package server

import (
	"slices"
	"testing"
	"time"
)

func TestOverlappingCallsGetASecondThread(t *testing.T) {
	now := testNow
	var set []int
	p := pace{now: func() time.Time { return now }, set: func(threads int) { set = append(set, threads) }}
	steps := []struct {
		name string
		do   func()
		want []int
	}{
		{"a call alone needs no more than one", func() { p.enter(); p.leave() }, nil},
		{"a second at the same time gets another", func() { p.enter(); p.enter() }, []int{2}},
		{"a third finds it there", func() { p.enter(); p.leave() }, []int{2}},
		{"it stays for a while", func() { p.leave(); p.leave(); p.enter(); p.leave() }, []int{2}},
		{"it goes when calls no longer overlap", func() { now = now.Add(2 * paceTime); p.enter(); p.leave() }, []int{2, 1}},
		{"and comes back", func() { p.enter(); p.enter(); p.leave(); p.leave() }, []int{2, 1, 2}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			if !slices.Equal(set, step.want) {
				t.Errorf("got %v", set)
			}
		})
	}
}
