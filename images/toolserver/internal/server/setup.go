package server

import (
	"context"
	"sync"
	"unicode/utf8"
)

// setupOutput is enough to see what went wrong, and small enough to ask for often.
const setupOutput = 64 << 10

// setup is how far the environment's own commands got.
type setup struct {
	mu     sync.Mutex
	state  string
	output string
}

const (
	setupPending = ""
	setupNone    = "none"
	setupRunning = "running"
	setupDone    = "done"
	setupFailed  = "failed"
)

// Prepare runs the set-up, once; nil means that there is none. The sandbox is
// ready when it returns nil, and never if it does not.
func (s *Server) Prepare(commands func(context.Context) error) error {
	if commands == nil {
		s.setup.set(setupNone, "")
		return nil
	}
	s.setup.set(setupRunning, "")
	if err := commands(s.ctx); err != nil {
		s.setup.set(setupFailed, tail(err.Error(), setupOutput))
		return err
	}
	s.setup.set(setupDone, "")
	return nil
}

func (p *setup) set(state, output string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.output = state, output
}

func (p *setup) get() (state, output string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == setupPending {
		return setupRunning, ""
	}
	return p.state, p.output
}

func (s *Server) ready() bool {
	state, _ := s.setup.get()
	return (state == setupNone || state == setupDone) && !s.stopping()
}

// tail keeps the end, where commands say why they failed.
func tail(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}
