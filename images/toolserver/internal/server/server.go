// Package server answers the gateway: it checks who asks, whether the sandbox
// is theirs, whether the call is new and its arguments right, and then lets a
// tool do the work. What tools do, and what an answer means for a rollout, is
// decided elsewhere.
package server

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"sync"
	"time"

	"rollcage.dev/toolserver/internal/fence"
	"rollcage.dev/toolserver/internal/journal"
	"rollcage.dev/toolserver/internal/schema"
	"rollcage.dev/toolserver/internal/token"
	"rollcage.dev/toolserver/internal/tool"
)

// What the server holds in memory, at most.
const (
	journalCalls = 100_000
	journalBytes = 16 << 20
	// bodyBytes bounds the arguments of all calls that run or wait.
	bodyBytes = 16 << 20
	// Transfers and streams hold a thread or a buffer each.
	maxTransfers = 8
	maxStreams   = 32
)

// An interrupt must never wait behind what it interrupts, so it has places of
// its own.
const (
	urgentTool    = "session_interrupt"
	urgentRunning = 16
	urgentWaiting = 64
)

// Options are what a server is made from.
type Options struct {
	Sandbox string
	Keys    map[string]ed25519.PublicKey
	BootID  string
	Tools   []tool.Tool
	Files   Files
	// Serial runs calls one at a time, in the order of their arrival.
	Serial          bool
	ConcurrentCalls int
	WaitingCalls    int
	Now             func() time.Time
	// Freeze, when not nil, ends whatever calls left running, and says how
	// many processes it could not end. Nothing is started after it.
	Freeze func() (left int)
	// Threads, when not nil, sets how many threads run Go code at once.
	Threads func(int)
	// Taken, when not nil, is called before anything is done for a rollout.
	Taken func()
}

// Server is made by New; Handler serves its requests until Stop.
type Server struct {
	options  Options
	verifier *token.Verifier
	tools    map[string]offered
	started  time.Time

	fence     fence.Fence
	journal   *journal.Journal
	calls     *gate
	urgent    *gate
	bodies    *budget
	transfers *budget
	streams   *budget
	hubs      hubs
	count     counters
	setup     setup
	pace      pace
	seal      seal

	// ctx ends when the server stops. Under it, open ends when no more calls
	// are taken, and work when those that run must end; calls run under work
	// and not under their request, whose client may go away and come back.
	// The causes are refusals.
	ctx, open, work       context.Context
	cancel, shut, endWork context.CancelCauseFunc
	// running counts calls and uploads.
	running sync.WaitGroup
	// entry is held for reading while one of them is entered, so that Stop
	// and the seal wait for all that came before them and none comes after.
	entry sync.RWMutex
}

// offered is a tool with its schema.
type offered struct {
	tool.Tool
	schema *schema.Schema
}

// New fails on a tool whose schema it could not enforce.
func New(options Options) (*Server, error) {
	running := options.ConcurrentCalls
	if options.Serial {
		running = 1
	}
	s := &Server{
		options:   options,
		verifier:  token.NewVerifier(options.Sandbox, options.Keys),
		tools:     map[string]offered{},
		started:   options.Now(),
		journal:   journal.New(journal.Limits{Calls: journalCalls, Bytes: journalBytes}),
		calls:     newGate(running, options.WaitingCalls),
		urgent:    newGate(urgentRunning, urgentWaiting),
		bodies:    newBudget(bodyBytes),
		transfers: newBudget(maxTransfers),
		streams:   newBudget(maxStreams),
		pace:      pace{set: options.Threads, now: options.Now},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.open, s.shut = context.WithCancelCause(s.ctx)
	s.work, s.endWork = context.WithCancelCause(s.ctx)
	s.seal.done = make(chan struct{})
	for _, t := range options.Tools {
		parsed, err := schema.Parse(t.Parameters())
		if err != nil {
			return nil, fmt.Errorf("tool %s: parameters: %w", t.Name(), err)
		}
		if _, twice := s.tools[t.Name()]; twice {
			return nil, fmt.Errorf("tool %s stands twice", t.Name())
		}
		s.tools[t.Name()] = offered{t, parsed}
	}
	return s, nil
}

// Handler serves the contract of docs/toolserver.md.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Stop refuses new calls and ends those that run, through kill, and waits
// until each has its answer in the journal or ctx is done.
func (s *Server) Stop(ctx context.Context, kill func()) {
	s.entry.Lock()
	s.cancel(errStopping)
	s.entry.Unlock()
	done := make(chan struct{})
	go func() {
		kill()
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (s *Server) stopping() bool { return s.ctx.Err() != nil }
