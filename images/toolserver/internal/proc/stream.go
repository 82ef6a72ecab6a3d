package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

var past = time.Unix(1, 0)

// Stream is our end of a pipe that a child writes to, read through the
// runtime's poller so that waiting blocks no thread.
type Stream struct {
	file  *os.File
	raw   syscall.RawConn
	ended bool
}

// NewStream makes a pipe. child is the end to give to a process; the caller
// closes it after the start.
func NewStream() (stream *Stream, child int, err error) {
	ours, child, err := outputPipe()
	if err != nil {
		return nil, -1, err
	}
	file := os.NewFile(uintptr(ours), "output")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		syscall.Close(child)
		return nil, -1, err
	}
	return &Stream{file: file, raw: raw}, child, nil
}

// Pump hands what arrives to the sink until the end of the stream (true) or
// its deadline (false).
func (s *Stream) Pump(sink func([]byte)) (ended bool) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for !s.ended {
		n, err := s.file.Read(buffer[:])
		if n > 0 {
			sink(buffer[:n])
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		s.ended = err != nil
	}
	return true
}

// Drain hands over what is in the pipe now, without waiting for more: a
// process that we cannot kill may hold the other end open for ever.
func (s *Stream) Drain(sink func([]byte)) {
	buffer := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(buffer)
	for total := 0; !s.ended && total < pipeMax; {
		var n int
		var err error
		closed := s.raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), buffer[:]) })
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN || closed != nil {
			return
		}
		if n <= 0 {
			s.ended = true
			return
		}
		total += n
		sink(buffer[:n])
	}
}

// Ended says that Pump or Drain has come to the end of the stream.
func (s *Stream) Ended() bool { return s.ended }

// Until sets the deadline of Pump.
func (s *Stream) Until(deadline time.Time) { s.file.SetReadDeadline(deadline) }

// Wake makes Pump return.
func (s *Stream) Wake() { s.file.SetReadDeadline(past) }

// Close gives our end back; whoever still writes gets SIGPIPE.
func (s *Stream) Close() { s.file.Close() }
