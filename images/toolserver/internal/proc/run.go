package proc

import (
	"context"
	"syscall"
	"time"
)

// Command is a program that runs to its end, or to its limit.
type Command struct {
	Path string
	Args []string
	Env  []string
	Dir  string
	// Stdin is what the program can read; nothing when nil.
	Stdin []byte
	// Stdout receives the output as it arrives, and what the program writes
	// to its error stream as well when Stderr is nil. The bytes are valid
	// only during the call. With both, the two are called concurrently.
	Stdout, Stderr func([]byte)
	Limit          time.Duration
}

// Outcome is how it ended.
type Outcome struct {
	// Status means something only when Known.
	Status syscall.WaitStatus
	Known  bool
	// TimedOut and Stopped say who ended it: the limit, or the caller.
	TimedOut, Stopped bool
	PeakMemory        int64
	// Left counts processes that even SIGKILL did not end in time.
	Left int
}

// Run starts the program, waits until it ends, and kills everything it
// started that is left. The error says that it did not start.
func Run(ctx context.Context, command Command) (Outcome, error) {
	pipes, err := openPipes(command)
	if err != nil {
		return Outcome{}, err
	}
	defer pipes.close()

	deadline := time.Now().Add(command.Limit)
	mark := NewMark()
	process, err := start(Spec{
		Path: command.Path, Args: command.Args, Env: command.Env, Dir: command.Dir,
		Descriptors: pipes.child[:],
	}, mark, pipes.watch.wake, true)
	if err != nil {
		End(0, mark)
		return Outcome{}, err
	}
	pipes.follow(process)
	stop := context.AfterFunc(ctx, pipes.watch.wake)
	defer stop()
	pipes.feed(command.Stdin)

	var outcome Outcome
	outcome.TimedOut, outcome.Stopped = process.attend(ctx, pipes, deadline)
	if outcome.TimedOut || outcome.Stopped {
		process.Kill(syscall.SIGKILL)
	}
	outcome.Left = End(process.Pid, mark)
	outcome.Known = process.Settle()
	if outcome.Known {
		outcome.Status, outcome.PeakMemory = process.status, process.peak
	}
	pipes.drain()
	return outcome, nil
}

// attend takes the output until the process is dead, or says why it is not.
// Afterwards the keeper listens for deaths again.
func (p *Process) attend(ctx context.Context, pipes *pipes, deadline time.Time) (timedOut, stopped bool) {
	k := theKeeper()
	until := deadline
	if p.hushed {
		until = earlier(deadline, time.Now().Add(hushTime))
	}
	pipes.watch.until(until)
	for !p.Exited() {
		if ctx.Err() != nil {
			stopped = true
			break
		}
		ready := pipes.watch.wait()
		pipes.take(ready)
		if ready&deathBit != 0 {
			k.reap()
		}
		if ready != 0 {
			continue
		}
		if !time.Now().Before(deadline) && !p.Exited() {
			timedOut = true
			break
		}
		p.listen()
		pipes.watch.until(deadline)
	}
	p.listen()
	return timedOut, stopped
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Settle waits for a process that was killed; false when the kernel keeps it.
func (p *Process) Settle() bool {
	if p.Exited() {
		return true
	}
	timer := time.NewTimer(sweepLimit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}
