// Package session keeps shells that live longer than a command: directory,
// variables, functions and background processes stay until the session is
// closed. The shells have plain pipes, no terminal.
package session

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/truncate"
)

// session is one shell and everything it started.
type session struct {
	name    string
	process *proc.Process
	// turn is held by the one command that runs.
	turn chan struct{}

	input   *os.File
	control *proc.Stream
	output  *proc.Stream
	flushed chan struct{}
	drained chan struct{}

	mu sync.Mutex
	// marks are all that were ever given to this session: background
	// processes keep the mark of the command that started them.
	marks   []proc.Mark
	running *running
	cut     *truncate.Cut
	emit    func(string, []byte)

	outputBytes int
	lastStatus  int
	ending      sync.Once
}

// running is the command at work.
type running struct {
	mark  proc.Mark
	nonce string
	done  chan struct{}
}

// start starts the shell; ready makes sure that it works.
func start(name string, spec proc.Spec, outputBytes int) (*session, error) {
	s := &session{
		name:        name,
		turn:        make(chan struct{}, 1),
		flushed:     make(chan struct{}),
		drained:     make(chan struct{}),
		outputBytes: outputBytes,
		cut:         truncate.New(outputBytes),
	}
	var in [2]int
	if err := syscall.Pipe2(in[:], syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	defer syscall.Close(in[0])
	syscall.SetNonblock(in[1], true)
	s.input = os.NewFile(uintptr(in[1]), "commands")

	output, outputEnd, err := proc.NewStream()
	if err != nil {
		s.input.Close()
		return nil, err
	}
	defer syscall.Close(outputEnd)
	control, controlEnd, err := proc.NewStream()
	if err != nil {
		s.input.Close()
		output.Close()
		return nil, err
	}
	defer syscall.Close(controlEnd)
	s.output, s.control = output, control

	mark := proc.NewMark()
	s.marks = []proc.Mark{mark}
	spec.Descriptors = []int{in[0], outputEnd, outputEnd, controlEnd, proc.Null()}
	s.process, err = proc.Start(spec, mark, control.Wake)
	if err != nil {
		proc.End(0, mark)
		s.input.Close()
		output.Close()
		control.Close()
		return nil, err
	}
	go s.pump()
	go func() {
		<-s.process.Done()
		s.end()
	}()
	return s, nil
}

// pump takes the output all the time, also between commands: a background
// process that writes must not get stuck because nobody asks.
func (s *session) pump() {
	defer close(s.drained)
	for !s.output.Pump(s.take) {
		s.output.Drain(s.take)
		s.output.Until(time.Time{})
		s.flushed <- struct{}{}
	}
}

func (s *session) take(chunk []byte) {
	s.mu.Lock()
	s.cut.Write(chunk)
	emit := s.emit
	s.mu.Unlock()
	if emit != nil {
		emit("output", bytes.Clone(chunk))
	}
}

// collect returns everything printed until now, and begins anew.
func (s *session) collect() truncate.Text {
	select {
	case <-s.drained:
	default:
		s.output.Wake()
		select {
		case <-s.flushed:
		case <-s.drained:
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.cut.Text()
	s.cut = truncate.New(s.outputBytes)
	s.emit = nil
	return text
}

// end kills everything of the session. It returns when nothing is left.
func (s *session) end() {
	s.ending.Do(func() {
		s.mu.Lock()
		marks := s.marks
		s.mu.Unlock()
		s.process.Kill(syscall.SIGKILL)
		proc.End(s.process.Pid, marks...)
		select {
		case <-s.drained:
		case <-time.After(time.Second):
			// Someone we cannot kill holds the pipe.
		}
		s.process.Settle()
		s.input.Close()
		s.control.Close()
		s.output.Close()
		<-s.drained
	})
}

// ended says whether the shell is gone.
func (s *session) ended() bool { return s.process.Exited() }

// obituary says how the shell ended, and what to do.
func (s *session) obituary() string {
	const remedy = "; session_create makes a new one"
	if !s.ended() {
		return fmt.Sprintf("session %s was ended%s", s.name, remedy)
	}
	switch status := s.process.Status(); {
	case status.Exited():
		return fmt.Sprintf("session %s ended with exit code %d%s", s.name, status.ExitStatus(), remedy)
	case status.Signaled():
		return fmt.Sprintf("session %s ended: its shell was killed by signal %s%s", s.name, launch.SignalName(status.Signal()), remedy)
	}
	return fmt.Sprintf("session %s ended%s", s.name, remedy)
}
