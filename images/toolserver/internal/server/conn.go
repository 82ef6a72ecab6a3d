package server

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"rollcage.dev/toolserver/internal/quick"
)

// conn is a connection that gives its place back when it is closed, once.
type conn struct {
	net.Conn
	raw   syscall.RawConn
	quota *budget
	once  sync.Once
}

func newConn(inner net.Conn, quota *budget) net.Conn {
	c := &conn{Conn: inner, quota: quota}
	if socket, able := inner.(syscall.Conn); able {
		c.raw, _ = socket.SyscallConn()
	}
	return c
}

// Read waits as any connection does, and only spares the runtime the trouble
// that quick is about; Write does the same.
func (c *conn) Read(buffer []byte) (n int, err error) {
	if c.raw == nil || len(buffer) == 0 {
		return c.Conn.Read(buffer)
	}
	failed := c.raw.Read(func(fd uintptr) bool {
		n, err = quick.Read(int(fd), buffer)
		return err != syscall.EAGAIN
	})
	switch {
	case failed != nil:
		return 0, failed
	case err != nil:
		return 0, c.failure("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *conn) Write(data []byte) (written int, err error) {
	if c.raw == nil {
		return c.Conn.Write(data)
	}
	failed := c.raw.Write(func(fd uintptr) bool {
		for written < len(data) {
			var n int
			if n, err = quick.Write(int(fd), data[written:]); err != nil {
				return err != syscall.EAGAIN
			}
			written += n
		}
		return true
	})
	switch {
	case failed != nil:
		return written, failed
	case err != nil:
		return written, c.failure("write", err)
	}
	return written, nil
}

// failure looks as net/http knows it: it tells a client that went away from
// one that sent nonsense.
func (c *conn) failure(operation string, err error) error {
	return &net.OpError{Op: operation, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(operation, err)}
}

func (c *conn) Close() error {
	c.once.Do(func() { c.quota.give(1) })
	return c.Conn.Close()
}

// CloseWrite lets net/http end a refused upload so that the client still
// reads the answer; it looks for this method by name.
func (c *conn) CloseWrite() error {
	if half, able := c.Conn.(interface{ CloseWrite() error }); able {
		return half.CloseWrite()
	}
	return nil
}
