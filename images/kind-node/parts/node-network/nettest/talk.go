package nettest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// For what shall get through; no busy machine needs so long.
	patience = 20 * time.Second
	// For what shall not: a packet needs less than a millisecond.
	impatience = 400 * time.Millisecond

	sysSetns = 308 // of amd64
)

// Listen answers every connection and every datagram with what was said, until
// the test ends, and returns who tells how many datagrams have come.
func (n Net) Listen(name, network string, port int) func() int {
	n.t.Helper()
	var heard atomic.Int64
	n.in(name, func() {
		where := fmt.Sprintf(":%d", port)
		if strings.HasPrefix(network, "udp") {
			socket, err := net.ListenPacket(network, where)
			check(n.t, err)
			n.t.Cleanup(func() { socket.Close() })
			go echoPackets(socket, &heard)
			return
		}
		listener, err := net.Listen(network, where)
		check(n.t, err)
		n.t.Cleanup(func() { listener.Close() })
		go echo(listener)
	})
	return func() int { return int(heard.Load()) }
}

// Reaches tells whether somebody gets an answer.
func (n Net) Reaches(from, network, to string) bool {
	n.t.Helper()
	return n.talks(from, network, to, patience)
}

// Stopped tells whether somebody gets none.
func (n Net) Stopped(from, network, to string) bool {
	n.t.Helper()
	return !n.talks(from, network, to, impatience)
}

func (n Net) talks(from, network, to string, within time.Duration) bool {
	n.t.Helper()
	connection, err := n.dial(from, network, to, within)
	if err != nil {
		return false
	}
	defer connection.Close()
	return Alive(connection, within)
}

// Dial connects, and leaves the talking to the test.
func (n Net) Dial(from, network, to string) net.Conn {
	n.t.Helper()
	connection, err := n.dial(from, network, to, patience)
	check(n.t, err)
	n.t.Cleanup(func() { connection.Close() })
	return connection
}

// Alive tells whether what is said on a connection is answered.
func Alive(connection net.Conn, within time.Duration) bool {
	_ = connection.SetDeadline(time.Now().Add(within))
	heard := make([]byte, 5)
	if _, err := connection.Write([]byte("hello")); err != nil {
		return false
	}
	_, err := connection.Read(heard)
	return err == nil
}

// SendAs says something by UDP with a certain source, and waits for no answer.
func (n Net) SendAs(from, source, to string) {
	n.t.Helper()
	n.in(from, func() {
		dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.MustParseAddrPort(source))}
		connection, err := dialer.Dial("udp4", to)
		check(n.t, err)
		defer connection.Close()
		_, err = connection.Write([]byte("hello"))
		check(n.t, err)
	})
}

func (n Net) dial(from, network, to string, within time.Duration) (connection net.Conn, err error) {
	n.t.Helper()
	n.in(from, func() { connection, err = net.DialTimeout(network, to, within) })
	return connection, err
}

// in runs something with its thread in a namespace; sockets stay where they were made.
func (n Net) in(name string, do func()) {
	n.t.Helper()
	done := make(chan error)
	go func() {
		// Never unlocked: the thread is thrown away with the goroutine.
		runtime.LockOSThread()
		file, err := os.Open("/run/netns/" + n.prefix + name)
		if err == nil {
			defer file.Close()
			if _, _, number := syscall.Syscall(sysSetns, file.Fd(), syscall.CLONE_NEWNET, 0); number != 0 {
				err = number
			} else {
				do()
			}
		}
		done <- err
	}()
	check(n.t, <-done)
}

func echo(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			said := make([]byte, 100)
			for {
				count, err := connection.Read(said)
				if err != nil {
					return
				}
				_, _ = connection.Write(said[:count])
			}
		}()
	}
}

func echoPackets(socket net.PacketConn, heard *atomic.Int64) {
	said := make([]byte, 100)
	for {
		count, from, err := socket.ReadFrom(said)
		if err != nil {
			return
		}
		heard.Add(1)
		_, _ = socket.WriteTo(said[:count], from)
	}
}
