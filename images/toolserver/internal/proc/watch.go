package proc

import (
	"cmp"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// spareWatches is how many are kept for the next calls; each is a descriptor.
const spareWatches = 16

// watch waits for several descriptors of one run at once: an epoll instance
// inside the runtime's own. Waiting blocks no thread, and needs no goroutine
// per descriptor, whose every hand-over could wake a thread.
type watch struct {
	file  *os.File
	raw   syscall.RawConn
	look  func(fd uintptr) bool
	ready uint32
}

var spare = make(chan *watch, spareWatches)

func newWatch() (*watch, error) {
	select {
	case w := <-spare:
		return w, nil
	default:
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	// Or os would take it for something that cannot be waited for.
	syscall.SetNonblock(fd, true)
	w := &watch{file: os.NewFile(uintptr(fd), "watch")}
	w.look = w.lookOnce
	if w.raw, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil, err
	}
	return w, nil
}

// add waits for a descriptor too. bit tells it in what wait returns.
func (w *watch) add(fd int, bit uint32) error {
	return w.control(syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(bit)})
}

// remove comes before the close: another call's child, on its way from fork to
// exec, may hold a copy for a moment, and a copy would still be watched.
func (w *watch) remove(fd int) { w.control(syscall.EPOLL_CTL_DEL, fd, nil) }

func (w *watch) control(operation, fd int, event *syscall.EpollEvent) (err error) {
	failed := w.raw.Control(func(epoll uintptr) { err = syscall.EpollCtl(int(epoll), operation, fd, event) })
	return cmp.Or(failed, err)
}

// wait returns the bits of what can be read; none at the deadline or a wake.
func (w *watch) wait() uint32 {
	if w.raw.Read(w.look) != nil {
		return 0
	}
	return w.ready
}

// peek is wait without waiting.
func (w *watch) peek() uint32 {
	w.raw.Control(func(fd uintptr) { w.look(fd) })
	return w.ready
}

func (w *watch) lookOnce(fd uintptr) bool {
	var events [3]syscall.EpollEvent
	// Never blocks, so the runtime need not hear of it.
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, fd,
		uintptr(unsafe.Pointer(&events)), uintptr(len(events)), 0, 0, 0)
	w.ready = 0
	if errno != 0 {
		return false
	}
	for _, event := range events[:n] {
		w.ready |= uint32(event.Fd)
	}
	return w.ready != 0
}

func (w *watch) until(deadline time.Time) { w.file.SetReadDeadline(deadline) }

func (w *watch) wake() { w.file.SetReadDeadline(past) }

// release comes when everything that was added is removed. A late wake of the
// call before does no harm: whoever is woken looks why.
func (w *watch) release() {
	w.until(time.Time{})
	select {
	case spare <- w:
	default:
		w.file.Close()
	}
}
