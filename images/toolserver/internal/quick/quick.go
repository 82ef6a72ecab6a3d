// Package quick makes system calls that never block, and for which the Go
// runtime therefore need not prepare. The usual way through package syscall
// wakes the runtime's monitor thread from its sleep, which then looks around
// every few microseconds: for a call that lasts a millisecond that is a good
// part of all the work. Nothing that may block belongs here, since it would
// hold up every other goroutine.
package quick

import (
	"syscall"
	"unsafe"
)

// Read reads from a descriptor that does not block, or from a file that is
// made as it is read, such as those of the kernel.
func Read(fd int, buffer []byte) (int, error) {
	return transfer(syscall.SYS_READ, fd, buffer, 0)
}

// Write writes to a descriptor that does not block.
func Write(fd int, data []byte) (int, error) {
	return transfer(syscall.SYS_WRITE, fd, data, 0)
}

// Pread reads from the beginning of a file of the kernel.
func Pread(fd int, buffer []byte) (int, error) {
	return transfer(syscall.SYS_PREAD64, fd, buffer, 0)
}

func transfer(call uintptr, fd int, data []byte, offset uintptr) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(call, uintptr(fd),
			uintptr(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data)), offset, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, errno
	}
}

// OpenAt opens a file of the kernel.
func OpenAt(directory int, path string, flags int) (int, error) {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(directory),
		uintptr(unsafe.Pointer(name)), uintptr(flags), 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// Close closes a pipe or another descriptor that has nothing to write back.
func Close(fd int) { syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

// NonBlocking sets the mode of a new descriptor that has no other flags.
func NonBlocking(fd int) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFL, syscall.O_NONBLOCK); errno != 0 {
		return errno
	}
	return nil
}

// Reap collects a dead child, if there is one; pid is 0 if there is none yet.
func Reap(status *syscall.WaitStatus, usage *syscall.Rusage) (pid int, err error) {
	for {
		var raw int32
		n, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&raw)),
			syscall.WNOHANG|syscall.WALL, uintptr(unsafe.Pointer(usage)), 0, 0)
		switch errno {
		case 0:
			*status = syscall.WaitStatus(raw)
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, errno
	}
}
