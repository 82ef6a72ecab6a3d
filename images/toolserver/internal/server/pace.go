package server

import (
	"sync"
	"time"
)

// paceTime is how long after calls last overlapped they are expected to again.
const paceTime = 2 * time.Second

// pace decides how many threads may run Go code at the same time. One is best
// for calls that come one after the other: nothing has to be handed from
// thread to thread. But starting a program stops that thread until the program
// is loaded, so calls that overlap need a second one to go on meanwhile.
type pace struct {
	// set changes the number; it costs some microseconds. Nil does nothing.
	set func(threads int)
	now func() time.Time

	mu      sync.Mutex
	running int
	two     bool
	overlap time.Time
}

func (p *pace) enter() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running++; p.running < 2 {
		return
	}
	p.overlap = p.now()
	if !p.two {
		p.two = true
		p.set(2)
	}
}

func (p *pace) leave() {
	if p.set == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	if p.two && p.running == 0 && p.now().Sub(p.overlap) > paceTime {
		p.two = false
		p.set(1)
	}
}
