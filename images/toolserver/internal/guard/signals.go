package guard

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// uninteresting signals are received and forgotten. They are not ignored in
// the kernel's sense, because children would inherit that: every `yes | head`
// in the sandbox would misbehave.
var uninteresting = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE, syscall.SIGALRM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGXCPU,
	syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGIO, syscall.SIGPWR,
}

// filtered are the signals whose Go handler would end the process, or start
// its end, whoever sent them. SIGURG and SIGCHLD stay as they are: the runtime
// sends itself the one, the kernel sends the other, and neither does harm.
var filtered = []syscall.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT,
	syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGTERM, syscall.SIGSTKFLT, syscall.SIGSYS,
}

// orphaned signals belong to C libraries, so Go installs no handler for them.
// The kernel drops them for PID 1 only as long as no thread of it blocks
// signals, which Go's threads do now and then.
var orphaned = []syscall.Signal{32, 33, 34}

// faults are the signals that our own code can raise, one bit each.
var faults uint32 = 1<<syscall.SIGILL | 1<<syscall.SIGTRAP | 1<<syscall.SIGBUS | 1<<syscall.SIGFPE |
	1<<syscall.SIGSEGV | 1<<syscall.SIGSYS

// Signals returns the channel on which a request to stop arrives.
//
// The kernel drops signals for PID 1 unless it has a handler, and Go installs
// one for every signal: without more, `kill -SEGV 1` from inside would crash
// the sandbox and `kill 1` would stop it. So as PID 1 a filter stands before
// Go's handler and lets pass only our own faults and what came from outside
// the sandbox.
func Signals() (<-chan os.Signal, error) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	forget := make(chan os.Signal, 1)
	signal.Notify(forget, uninteresting...)
	go func() {
		for range forget {
		}
	}()
	if os.Getpid() == 1 {
		if err := filterSignals(); err != nil {
			return nil, fmt.Errorf("cannot filter signals: %w", err)
		}
	}
	return stop, nil
}

// sigaction is the kernel's struct on amd64 and arm64.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// goHandler is the runtime's handler, one for all signals.
var goHandler uintptr

// filterSignals must run after signal.Notify, which would install Go's handler anew.
func filterSignals() error {
	for _, sig := range filtered {
		var action sigaction
		if err := rtSigaction(sig, nil, &action); err != nil {
			return fmt.Errorf("%v: %w", sig, err)
		}
		// 0 is the default, which PID 1 does not get; 1 means ignored.
		if action.handler <= 1 {
			continue
		}
		if goHandler != 0 && goHandler != action.handler {
			return fmt.Errorf("%v has a handler of its own", sig)
		}
		goHandler = action.handler
		action.handler = filterAddress()
		if err := rtSigaction(sig, &action, nil); err != nil {
			return fmt.Errorf("%v: %w", sig, err)
		}
	}
	// With the flags and the restorer that Go's own handlers return by.
	var action sigaction
	if err := rtSigaction(syscall.SIGTERM, nil, &action); err != nil {
		return err
	}
	for _, sig := range orphaned {
		if err := rtSigaction(sig, &action, nil); err != nil {
			return fmt.Errorf("%v: %w", sig, err)
		}
	}
	return nil
}

func rtSigaction(sig syscall.Signal, set, old *sigaction) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// filterAddress returns where the filter's code is. In assembly, since the
// kernel calls it on a stack that Go code may not use.
func filterAddress() uintptr
