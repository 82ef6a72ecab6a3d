package proc

import (
	"context"
	"os"
	"syscall"
	"time"
)

// The end of its output comes microseconds before a program's death, and the
// signal of its death takes a while through the runtime: looking a few times
// is faster than waiting for it.
const eagerLooks = 5

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
	pipes.until(deadline)
	mark := NewMark()
	process, err := Start(Spec{
		Path: command.Path, Args: command.Args, Env: command.Env, Dir: command.Dir,
		Descriptors: pipes.child[:],
	}, mark, pipes.wake)
	pipes.closeChild()
	if err != nil {
		End(0, mark)
		return Outcome{}, err
	}
	stop := context.AfterFunc(ctx, pipes.wake)
	defer stop()
	pipes.feed(command.Stdin)
	rest := pipes.pump(command)

	var outcome Outcome
	outcome.TimedOut, outcome.Stopped = process.wait(ctx, deadline)
	if outcome.TimedOut || outcome.Stopped {
		process.Kill(syscall.SIGKILL)
	}
	outcome.Left = End(process.Pid, mark)
	outcome.Known = process.Settle()
	if outcome.Known {
		outcome.Status, outcome.PeakMemory = process.status, process.peak
	}
	rest()
	return outcome, nil
}

// wait returns when the process is dead, or says why it is not.
func (p *Process) wait(ctx context.Context, deadline time.Time) (timedOut, stopped bool) {
	for look := 0; look < eagerLooks && !p.Exited(); look++ {
		theKeeper().reap()
		syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	}
	if p.Exited() {
		return false, false
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-p.done:
		return false, false
	case <-timer.C:
		return true, false
	case <-ctx.Done():
		return false, true
	}
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

// pipes are the ends of one run. In the child, 1 and 2 may be the same.
type pipes struct {
	out, err *Stream
	in       *os.File
	child    [3]int
}

func openPipes(command Command) (*pipes, error) {
	p := &pipes{child: [3]int{Null(), -1, -1}}
	var err error
	if p.out, p.child[1], err = NewStream(); err != nil {
		return nil, err
	}
	p.child[2] = p.child[1]
	if command.Stderr != nil {
		p.child[2] = -1
		if p.err, p.child[2], err = NewStream(); err != nil {
			p.closeChild()
			p.close()
			return nil, err
		}
	}
	if command.Stdin != nil {
		var ends [2]int
		if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
			p.closeChild()
			p.close()
			return nil, err
		}
		syscall.SetNonblock(ends[1], true)
		p.child[0], p.in = ends[0], os.NewFile(uintptr(ends[1]), "input")
	}
	return p, nil
}

func (p *pipes) until(deadline time.Time) {
	p.out.Until(deadline)
	if p.err != nil {
		p.err.Until(deadline)
	}
}

func (p *pipes) wake() {
	p.out.Wake()
	if p.err != nil {
		p.err.Wake()
	}
}

// feed writes beside the reading, or a program that answers before it has
// read everything would deadlock with us. close ends it.
func (p *pipes) feed(content []byte) {
	if p.in == nil {
		return
	}
	go func() {
		p.in.Write(content)
		p.in.Close()
	}()
}

// pump reads until the deadline, the end or a wake; rest reads what is left
// in the pipes once every writer is dead.
func (p *pipes) pump(command Command) (rest func()) {
	if p.err == nil {
		p.out.Pump(command.Stdout)
		return func() { p.out.Drain(command.Stdout) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.err.Pump(command.Stderr)
	}()
	p.out.Pump(command.Stdout)
	return func() {
		p.err.Wake()
		<-done
		p.out.Drain(command.Stdout)
		p.err.Drain(command.Stderr)
	}
}

func (p *pipes) closeChild() {
	if p.child[0] != Null() {
		syscall.Close(p.child[0])
	}
	if p.child[1] >= 0 {
		syscall.Close(p.child[1])
	}
	if p.child[2] >= 0 && p.child[2] != p.child[1] {
		syscall.Close(p.child[2])
	}
}

func (p *pipes) close() {
	p.out.Close()
	if p.err != nil {
		p.err.Close()
	}
	if p.in != nil {
		p.in.Close()
	}
}
