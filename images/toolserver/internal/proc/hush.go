package proc

import (
	"syscall"
	"time"
	"unsafe"
)

// hushTime is how long a call may keep SIGCHLD away: longer than most calls
// take, and short enough for an orphan to wait for its burial.
const hushTime = 10 * time.Millisecond

// sigaction is the kernel's struct on amd64 and arm64; zero is the default.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

// hush has the kernel drop SIGCHLD instead of sending it. On its way through
// the runtime it wakes three threads, which is as much work as a short call,
// and says only what the call's own descriptor says at once. Every hush is
// followed by a listen within hushTime. mu must be held.
func (k *keeper) hush() {
	if k.hushed++; k.hushed == 1 && k.heard.handler > 1 {
		rtSigaction(syscall.SIGCHLD, &sigaction{}, nil)
	}
}

// listen takes one hush back, and looks for what died meanwhile: whoever was
// not called for is found here at the latest.
func (k *keeper) listen() {
	k.mu.Lock()
	if k.hushed--; k.hushed == 0 && k.heard.handler > 1 {
		rtSigaction(syscall.SIGCHLD, &k.heard, nil)
	}
	k.mu.Unlock()
	k.reap()
}

func rtSigaction(signal syscall.Signal, set, old *sigaction) {
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), unsafe.Sizeof(set.mask), 0, 0)
}

// openPidfd returns a descriptor that becomes readable when the process is
// dead, or -1 where there is no such thing (gVisor, old kernels).
func openPidfd(pid int) int {
	const pidfdOpen = 434 // On every architecture.
	fd, _, errno := syscall.RawSyscall(pidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return -1
	}
	return int(fd)
}
