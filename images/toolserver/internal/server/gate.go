package server

import (
	"context"
	"sync"
)

// gate bounds how many calls run and how many wait, and lets them in in the
// order in which they came.
type gate struct {
	mu    sync.Mutex
	free  int
	room  int // how many more may wait
	queue []ticket
}

// ticket is closed when its holder's turn has come.
type ticket chan struct{}

func newGate(running, waiting int) *gate { return &gate{free: running, room: waiting} }

// enter takes a place to run, or one to wait, or none.
func (g *gate) enter() (ticket, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := make(ticket)
	switch {
	case g.free > 0:
		g.free--
		close(t)
	case g.room > 0:
		g.room--
		g.queue = append(g.queue, t)
	default:
		return nil, errBusy
	}
	return t, nil
}

// given says without waiting whether the turn has come.
func (t ticket) given() bool {
	select {
	case <-t:
		return true
	default:
		return false
	}
}

// wait returns when it is the ticket's turn, or why it never will be.
func (t ticket) wait(ctx context.Context) error {
	select {
	case <-t:
	case <-ctx.Done():
	}
	// Both may be true, and then nothing new may start.
	return context.Cause(ctx)
}

// leave gives the place to the next in line.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.free++
		return
	}
	close(g.queue[0])
	g.queue[0] = nil
	g.queue = g.queue[1:]
	g.room++
}
