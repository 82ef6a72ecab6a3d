package proc

import (
	"slices"
	"syscall"
	"time"
)

// Long enough for a thousand processes on a starved machine to die; beyond it
// only a process stuck in the kernel is left, which nobody can kill.
const sweepLimit = 5 * time.Second

// A fork bomb that outruns this many rounds is met with the one kill that no
// fork can outrun.
const patientRounds = 4

// Every pass stops what the one before missed; a bomb that is still growing
// after these gets killed as far as it is known and meets the next round.
const stopPasses = 16

// End takes marks out of use and kills everything that carries one, wherever
// it went. group, when not zero, is the process group of the leader. It
// returns how many processes it could not kill.
func End(group int, marks ...Mark) (left int) {
	k := theKeeper()
	k.mu.Lock()
	for _, mark := range marks {
		delete(k.live, mark)
	}
	k.mu.Unlock()
	return k.sweep(group, func(pid int, mark Mark) bool {
		if k.marker == noMarker {
			return group != 0 && readStat(pid).session == group
		}
		return slices.Contains(marks, mark)
	})
}

// EndAll takes every mark out of use and kills whatever carries one or descends
// from us. Nothing may be started during it or after it. It returns how many
// processes it could not kill.
func EndAll() (left int) {
	k := theKeeper()
	k.mu.Lock()
	clear(k.live)
	k.mu.Unlock()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		left = k.sweep(0, func(pid int, mark Mark) bool { return k.ours(mark) || k.descends(pid) })
		// One that forks and dies all the time is never where a look at the
		// table expects it; but it is always somebody's child, at last ours.
		if !k.adopts || k.reap() {
			return left
		}
		if time.Since(began) > sweepLimit {
			return max(left, 1)
		}
		k.killNamespace()
	}
}

// Kill kills what carries the mark, except one process, and leaves the mark
// in use.
func Kill(mark Mark, except int) (left int) {
	return theKeeper().sweep(0, func(pid int, of Mark) bool { return of == mark && pid != except })
}

// Signal sends one signal to everything that carries the mark and returns how
// many processes that were.
func Signal(mark Mark, signal syscall.Signal) int {
	seen := theKeeper().scan(func(_ int, of Mark) bool { return of == mark })
	signalAll(seen.wanted, signal)
	return len(seen.wanted)
}

func (k *keeper) sweep(group int, wanted func(int, Mark) bool) (left int) {
	pause := 50 * time.Microsecond
	quiet := false
	for round, began := 0, time.Now(); ; round++ {
		if k.reap() && k.adopts {
			return 0
		}
		seen := k.scan(wanted)
		if round > 0 {
			seen.wanted = slices.DeleteFunc(seen.wanted, func(pid int) bool { return !running(pid) })
		}
		if len(seen.wanted) == 0 {
			signalAll(seen.strays, syscall.SIGKILL)
			// One empty look is proof only if nobody was forking before it.
			if round == 0 || quiet {
				return 0
			}
			quiet = true
			continue
		}
		quiet = false
		if time.Since(began) > sweepLimit {
			return len(seen.wanted)
		}
		k.strike(group, round, seen, wanted)
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
}

// strike kills what was seen. Several are stopped first, and looked for until
// no new one turns up: killed one by one, a fork bomb refills faster.
func (k *keeper) strike(group, round int, seen found, wanted func(int, Mark) bool) {
	if round >= patientRounds && k.killNamespace() {
		return
	}
	if group != 0 {
		syscall.Kill(-group, syscall.SIGKILL)
	}
	targets := append(seen.wanted, seen.strays...)
	known := 0
	for pass := 0; pass < stopPasses && len(targets) > 1 && len(targets) > known; pass++ {
		known = len(targets)
		signalAll(targets, syscall.SIGSTOP)
		again := k.scan(wanted)
		targets = append(targets, again.wanted...)
		targets = append(targets, again.strays...)
		slices.Sort(targets)
		targets = slices.Compact(targets)
	}
	signalAll(targets, syscall.SIGKILL)
}

// killNamespace kills every process but us, if we are PID 1 and nothing in the
// namespace is worth keeping. It excludes forks, so that a call that begins
// now is not hit by it.
func (k *keeper) killNamespace() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.self != 1 || len(k.live) > 0 {
		return false
	}
	syscall.Kill(-1, syscall.SIGKILL)
	return true
}

func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, signal)
	}
}
