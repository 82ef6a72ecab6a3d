// Package guard makes the process hard to kill, stop or look into from inside
// the sandbox. Everything here is done once, at start, before anything listens.
package guard

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
)

const (
	prSetDumpable       = 4
	prSetChildSubreaper = 36

	// memoryLimit makes the collector work harder before the sandbox's own
	// limit is near; it is a soft limit, and live data is bounded elsewhere.
	memoryLimit = 64 << 20
	// collectEarly trades a little CPU for a small idle size.
	collectEarly = 40
	// startThreads run Go code at once, to begin with: the work is a little
	// here and there between waiting for programs, and done by one thread it
	// needs no other to be woken, which costs more than the work itself. What
	// computes for long is interrupted every 10 ms.
	startThreads = 1
)

// Threads sets how many threads run Go code at once.
func Threads(n int) { runtime.GOMAXPROCS(n) }

// Harden applies everything but signals.
func Harden(threads int) error {
	Threads(startThreads)
	debug.SetGCPercent(collectEarly)
	debug.SetMemoryLimit(memoryLimit)
	// A process that may not be dumped may not be traced either, and its
	// /proc files belong to root.
	if err := prctl(prSetDumpable, 0); err != nil {
		return fmt.Errorf("cannot become undumpable: %w", err)
	}
	if os.Getpid() != 1 {
		// Orphans come to PID 1 by themselves, and to anyone else on request.
		if err := prctl(prSetChildSubreaper, 1); err != nil {
			return fmt.Errorf("cannot become the reaper: %w", err)
		}
	}
	keepInherited()
	reserveThreads(threads)
	// Of all threads, so last.
	return shield()
}

// keepInherited makes this program the last one that has what its starter
// left open: no command of a model inherits it. Go does the same with all
// that it opens itself. Linux before 5.11 cannot, and is left as it is.
func keepInherited() {
	const closeRange, firstNotStandard, setCloseOnExec = 436, 3, 4
	syscall.RawSyscall(closeRange, firstNotStandard, ^uintptr(0), setCloseOnExec)
}

// reserveThreads makes the runtime create its threads now. A fork bomb fills
// the pids limit, and a Go program whose clone() fails dies. The runtime never
// gives an idle thread back, and a goroutine that is locked to its thread
// while it waits cannot share it, so n of them at once need n threads.
func reserveThreads(n int) {
	var waiting, done sync.WaitGroup
	release := make(chan struct{})
	for range n {
		waiting.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			waiting.Done()
			<-release
		})
	}
	waiting.Wait()
	close(release)
	done.Wait()
}

func prctl(option, value uintptr) error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, value, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
