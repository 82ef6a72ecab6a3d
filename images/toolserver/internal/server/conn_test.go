package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// connected returns our end and the client's.
func connected(t *testing.T) (ours net.Conn, client *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ours = newConn(accepted, newBudget(1))
	t.Cleanup(func() { ours.Close(); dialed.Close() })
	return ours, dialed.(*net.TCPConn)
}

func TestAConnectionCarriesMoreThanItsBuffersHold(t *testing.T) {
	ours, client := connected(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	go func() {
		ours.Write(sent)
		ours.Close()
	}()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestTheEndOfAConnectionIsRead(t *testing.T) {
	ours, client := connected(t)
	client.Write([]byte("last words"))
	client.CloseWrite()
	if got, err := io.ReadAll(ours); err != nil || string(got) != "last words" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAConnectionKeepsItsDeadlines(t *testing.T) {
	ours, _ := connected(t)
	ours.SetDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading: %v", err)
	}
	if n, err := ours.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n == 64<<20 {
		t.Errorf("writing: %d, %v", n, err)
	}
}

func TestAResetLooksLikeANetworkError(t *testing.T) {
	ours, client := connected(t)
	client.SetLinger(0)
	client.Close()
	_, err := ours.Read(make([]byte, 1))
	var operation *net.OpError
	if !errors.As(err, &operation) || operation.Op != "read" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v", err)
	}
}
