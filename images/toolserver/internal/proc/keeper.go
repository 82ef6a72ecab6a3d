// Package proc starts the sandbox's processes and knows when they, and all
// they started, are gone. It blocks no thread per child: a Go program that
// needs one more thread under a full pids limit dies, and the model decides
// when that limit is full. What the processes are for belongs to others.
package proc

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"rollcage.dev/toolserver/internal/quick"
)

const prSetChildSubreaper = 36

// keeper is the one parent of every child: wait4(-1) belongs to the whole
// program, so there can be no second one.
type keeper struct {
	// mu holds off the reaper from the fork until the child is in waiting:
	// a child that is dead before its fork returned would otherwise be reaped
	// by someone who does not know it. It also guards our own limits, which
	// carry the mark during a fork.
	mu      sync.Mutex
	waiting map[int]*Process
	live    map[Mark]struct{}
	// hushed counts the calls that keep SIGCHLD away; heard is its handler.
	hushed int
	heard  sigaction

	marker   int
	boot     Mark
	sequence uint64

	scanning sync.Mutex
	dirents  []byte
	proc     int
	null     int
	self     int
	// adopts says that every orphan comes to us, so that having no child
	// means having no descendant.
	adopts bool
}

var theKeeper = sync.OnceValue(newKeeper)

// Begin claims this program's children: from here on nothing else in it may
// wait for a process.
func Begin() { theKeeper() }

func newKeeper() *keeper {
	k := &keeper{
		waiting: make(map[int]*Process),
		live:    make(map[Mark]struct{}),
		dirents: make([]byte, 64<<10),
		self:    os.Getpid(),
		proc:    -1,
		null:    -1,
	}
	var seed [8]byte
	rand.Read(seed[:])
	k.boot = markBase | Mark(binary.NativeEndian.Uint64(seed[:]))&bootMask
	k.marker = findMarker()

	// Kept open, so that neither a removed file nor a lack of descriptors
	// can take them away later.
	if fd, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err == nil {
		k.proc = fd
	}
	if fd, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0); err == nil {
		k.null = fd
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
	k.adopts = errno == 0 || k.self == 1

	keepDescriptors()
	stopIgnoring()
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	rtSigaction(syscall.SIGCHLD, nil, &k.heard)
	go func() {
		for range died {
			k.reap()
		}
	}()
	return k
}

// keepDescriptors keeps what our own parent left open from our children; a
// listening socket, for one.
func keepDescriptors() {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// stopIgnoring catches what our own parent had us ignore: children inherit an
// ignored signal, but start with the default for a caught one.
func stopIgnoring() {
	sink := make(chan os.Signal, 1)
	for number := syscall.SIGHUP; number <= syscall.SIGSYS; number++ {
		if signal.Ignored(number) {
			signal.Notify(sink, number)
		}
	}
}

// reap collects every dead child, ours and adopted ones, and reports whether
// no child is left at all.
func (k *keeper) reap() (childless bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var usage syscall.Rusage
		pid, err := quick.Reap(&status, &usage)
		if err != nil {
			return true
		}
		if pid == 0 {
			return false
		}
		if process, ok := k.waiting[pid]; ok {
			delete(k.waiting, pid)
			process.ended(status, usage.Maxrss<<10)
		}
	}
}
