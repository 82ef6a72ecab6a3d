package proc

import (
	"strconv"
	"syscall"

	"rollcage.dev/toolserver/internal/quick"
)

// The kernel's OOM killer shall always find a child before it finds us.
const childOOMScore = "1000"

// Spec is a program to start. Descriptors are those of the child, from 0 up;
// Null stands for /dev/null.
type Spec struct {
	Path        string
	Args        []string
	Env         []string
	Dir         string
	Descriptors []int
}

// Null is the descriptor of /dev/null, shared by everyone.
func Null() int { return theKeeper().null }

// Process is a child: the leader of a session and process group of its own.
type Process struct {
	Pid  int
	done chan struct{}
	// wake is called once, when the process has been reaped.
	wake   func()
	status syscall.WaitStatus
	peak   int64

	// pidfd tells of its death, or is -1; it belongs to whoever started it.
	pidfd int
	// hushed says that SIGCHLD is kept away for its sake.
	hushed bool
}

// Done is closed when the process is dead and reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exited says without waiting whether the process is dead and reaped.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Status is how it ended; only after Done.
func (p *Process) Status() syscall.WaitStatus { return p.status }

// Start starts a program under a mark. wake, when not nil, is called at its
// death and must not block.
func Start(spec Spec, mark Mark, wake func()) (*Process, error) {
	return start(spec, mark, wake, false)
}

// start can also start a program that is watched through a pidfd, and hush
// SIGCHLD for it; the caller must then make it listen again.
func start(spec Spec, mark Mark, wake func(), watched bool) (*Process, error) {
	k := theKeeper()
	files := make([]uintptr, len(spec.Descriptors))
	for i, fd := range spec.Descriptors {
		files[i] = uintptr(fd)
	}
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	process := &Process{done: make(chan struct{}), wake: wake, pidfd: -1, hushed: watched}

	k.mu.Lock()
	if watched {
		k.hush()
	}
	k.wear(mark)
	pid, err := syscall.ForkExec(spec.Path, spec.Args, attr)
	k.wear(0)
	if err != nil {
		k.mu.Unlock()
		process.listen()
		return nil, err
	}
	process.Pid = pid
	k.waiting[pid] = process
	if watched {
		// Nobody reaps it before we unlock, so the number is still its own.
		process.pidfd = openPidfd(pid)
	}
	k.mu.Unlock()

	if process.pidfd < 0 {
		process.listen()
	}
	k.raiseOOMScore(pid)
	return process, nil
}

// listen ends the silence that was made for this process, once.
func (p *Process) listen() {
	if p.hushed {
		p.hushed = false
		theKeeper().listen()
	}
}

func (p *Process) ended(status syscall.WaitStatus, peak int64) {
	p.status, p.peak = status, peak
	close(p.done)
	if p.wake != nil {
		p.wake()
	}
}

// Kill signals the process group. It does nothing once the leader is reaped:
// the number may be someone else's by then.
func (p *Process) Kill(signal syscall.Signal) {
	k := theKeeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting[p.Pid] == p {
		syscall.Kill(-p.Pid, signal)
	}
}

// raiseOOMScore may fail (gVisor, a process that is gone): the score is a
// preference, not a promise.
func (k *keeper) raiseOOMScore(pid int) {
	fd, err := quick.OpenAt(k.proc, strconv.Itoa(pid)+"/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC)
	if err != nil {
		return
	}
	quick.Write(fd, []byte(childOOMScore))
	quick.Close(fd)
}
