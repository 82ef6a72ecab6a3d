package session

import (
	"context"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/truncate"
)

// How long a command has to end after an interrupt, before it is killed, and
// how often killing is tried before the session itself has to go.
const (
	interruptGrace = 300 * time.Millisecond
	killGrace      = 200 * time.Millisecond
	killAttempts   = 5
)

// ran is how a command in a session ended.
type ran struct {
	text   truncate.Text
	status int
	// over says that the shell has ended, with shellStatus.
	over        bool
	shellStatus syscall.WaitStatus
	timedOut    bool
	stopped     bool
	// busy says that another command ran until the limit and this one never did.
	busy bool
}

// run runs a command.
func (s *session) run(ctx context.Context, text string, limit time.Duration, emit func(string, []byte)) ran {
	return s.feed(ctx, func() string { return runLine(text, s.lastStatus) }, limit, emit)
}

// feed gives the shell a script and waits until it has come to its end.
func (s *session) feed(ctx context.Context, script func() string, limit time.Duration, emit func(string, []byte)) ran {
	deadline := time.Now().Add(limit)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-timer.C:
		return ran{busy: true, timedOut: true}
	case <-ctx.Done():
		return ran{busy: true, stopped: true}
	}

	at := s.begin(emit)
	defer s.finish(at)
	status, found := s.perform(ctx, at, script(), deadline)
	var result ran
	if !found && !s.ended() {
		result.stopped = ctx.Err() != nil
		result.timedOut = !result.stopped
		// A sandbox that shuts down has no time for manners.
		if result.timedOut {
			status, found = s.stopCommand(at)
		}
	}
	if !found {
		s.end()
		result.over = true
		if s.ended() {
			result.shellStatus = s.process.Status()
		}
	}
	s.lastStatus = status
	result.status = status
	result.text = s.collect()
	return result
}

// begin gives the shell a new mark, so that this command's processes can be
// told from those that earlier ones left in the background.
func (s *session) begin(emit func(string, []byte)) *running {
	at := &running{mark: proc.NewMark(), nonce: newNonce(), done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, at.mark)
	proc.Remark(s.process.Pid, at.mark)
	s.running, s.emit = at, emit
	return at
}

func (s *session) finish(at *running) {
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	close(at.done)
}

// perform feeds the shell and waits for its report.
func (s *session) perform(ctx context.Context, at *running, line string, deadline time.Time) (status int, found bool) {
	s.control.Until(deadline)
	if s.ended() {
		return 0, false
	}
	defer context.AfterFunc(ctx, s.control.Wake)()
	s.input.SetWriteDeadline(deadline)
	if _, err := s.input.WriteString(line + reportLine(at.nonce)); err != nil {
		return 0, false
	}
	status, found = s.await(at)
	if !found && s.control.Ended() {
		// Nobody can report any more: the shell is dying, or has become
		// another program, which has the rest of the time.
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		select {
		case <-s.process.Done():
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return status, found
}

// await reads reports until the right one, the deadline or the shell's death.
func (s *session) await(at *running) (status int, found bool) {
	expected := report{nonce: at.nonce}
	s.control.Pump(func(chunk []byte) {
		if expected.write(chunk) {
			s.control.Wake()
		}
	})
	return expected.status, expected.found
}

// stopCommand interrupts the command as a person would, then kills it, and
// keeps the shell if it comes back.
func (s *session) stopCommand(at *running) (status int, found bool) {
	s.interrupt(at)
	if status, found = s.ask(at, interruptGrace); found {
		return status, true
	}
	for range killAttempts {
		if s.control.Ended() {
			return 0, false
		}
		proc.Kill(at.mark, s.process.Pid)
		if status, found = s.ask(at, killGrace); found || s.ended() {
			return status, found
		}
		s.interrupt(at)
	}
	return 0, false
}

// interrupt sends SIGINT to the shell and to what this command started.
// Background processes ignore it, as every shell without job control has them do.
func (s *session) interrupt(at *running) {
	if proc.Signal(at.mark, syscall.SIGINT) == 0 {
		s.process.Kill(syscall.SIGINT)
	}
}

// ask waits for the report, and asks for it again half-way: an interrupted sh
// throws away the input it has read.
func (s *session) ask(at *running, grace time.Duration) (status int, found bool) {
	for range 2 {
		if s.control.Ended() {
			return 0, false
		}
		s.control.Until(time.Now().Add(grace / 2))
		if s.ended() {
			return 0, false
		}
		if status, found = s.await(at); found {
			return status, true
		}
		s.input.SetWriteDeadline(time.Now().Add(grace / 2))
		s.input.WriteString(reportLine(at.nonce))
	}
	return 0, false
}

// interruptRunning interrupts whatever runs now, once, and says whether there
// was something and whether it is over. A program may take its time; and bash
// goes on with the next one if that which the interrupt met ended well, since
// it then takes the interrupt for dealt with.
func (s *session) interruptRunning() (found, over bool) {
	s.mu.Lock()
	at := s.running
	s.mu.Unlock()
	if at == nil {
		return false, false
	}
	s.interrupt(at)
	if at.over(interruptGrace / 2) {
		return true, true
	}
	s.input.WriteString(reportLine(at.nonce))
	return true, at.over(interruptGrace / 2)
}

// over says whether the command ends within a time.
func (at *running) over(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-at.done:
		return true
	case <-timer.C:
		return false
	}
}
