package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

// pipes is a listener whose connections exist in virtual time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// inBubble connects a client to a whole server, both in virtual time.
func inBubble(t *testing.T, options Options, test func(t *testing.T, s *Server, conn net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := makeServer(t, options)
		s.Prepare(nil)
		web := s.HTTPServer()
		listener := make(pipes)
		go web.Serve(s.Limit(listener, nil))
		client, server := net.Pipe()
		listener <- server
		test(t, s, client)
		client.Close()
		close(listener)
		s.Stop(context.Background(), func() {})
		web.Close()
	})
}

func signed(method, path, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, sign("r1", "act"), len(body), body)
}

// closedAfter reads to the end of the connection and says when it came.
func closedAfter(conn net.Conn) time.Duration {
	began := time.Now()
	io.Copy(io.Discard, conn)
	return time.Since(began)
}

// about allows for the moment that some versions of Go's server wait before
// they close, so that the peer reads the answer and no reset.
func about(got, want time.Duration) bool { return got >= want && got <= want+time.Second }

func TestHeadersThatComeTooSlowlyEndTheConnection(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, _ *Server, conn net.Conn) {
		io.WriteString(conn, "GET /healthz HTTP/1.1\r\n")
		if got := closedAfter(conn); !about(got, headerTime) {
			t.Fatalf("closed after %v", got)
		}
	})
}

func TestAStrangersBodyIsNotWaitedFor(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, _ *Server, conn net.Conn) {
		io.WriteString(conn, "POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
		if got := closedAfter(conn); !about(got, headerTime) {
			t.Fatalf("closed after %v", got)
		}
	})
}

func TestABodyThatStandsStillEndsTheRequest(t *testing.T) {
	inBubble(t, Options{Tools: []tool.Tool{echo}}, func(t *testing.T, s *Server, conn net.Conn) {
		whole := signed("POST", "/v1/calls", callBody("c1", "echo", `{}`))
		io.WriteString(conn, whole[:len(whole)-5])
		if got := closedAfter(conn); !about(got, patience+headerTime) {
			t.Fatalf("closed after %v", got)
		}
		if s.bodies.left.Load() != bodyBytes || s.fence.Bound() != nil {
			t.Fatal("something is left of it")
		}
	})
}

func TestABodyThatKeepsMovingMayTakeItsTime(t *testing.T) {
	inBubble(t, Options{Tools: []tool.Tool{echo}}, func(t *testing.T, _ *Server, conn net.Conn) {
		whole := signed("POST", "/v1/calls", callBody("c1", "echo", `{}`))
		head, body, _ := strings.Cut(whole, "\r\n\r\n")
		io.WriteString(conn, head+"\r\n\r\n")
		for _, c := range []byte(body) {
			time.Sleep(patience - time.Second)
			conn.Write([]byte{c})
		}
		answer := make([]byte, 15)
		if _, err := io.ReadFull(conn, answer); err != nil || !bytes.Equal(answer, []byte("HTTP/1.1 200 OK")) {
			t.Fatalf("got %q, %v", answer, err)
		}
	})
}

func TestAClientThatStopsReadingIsCutOff(t *testing.T) {
	loud := fake{"loud", "", func(context.Context, tool.Call) tool.Result {
		return ok(strings.Repeat("x", 1<<20))
	}}
	inBubble(t, Options{Tools: []tool.Tool{loud}}, func(t *testing.T, s *Server, conn net.Conn) {
		io.WriteString(conn, signed("POST", "/v1/calls", callBody("c1", "loud", `{}`)))
		conn.Read(make([]byte, 100))
		time.Sleep(patience + time.Second)
		synctest.Wait()
		if left, _ := io.Copy(io.Discard, conn); left > 2*writePiece {
			t.Fatalf("%d more bytes came", left)
		}
	})
}

func TestALongCallIsNotTakenForAStall(t *testing.T) {
	slow := fake{"slow", "", func(context.Context, tool.Call) tool.Result {
		time.Sleep(9 * time.Minute)
		return ok("at last")
	}}
	inBubble(t, Options{Tools: []tool.Tool{slow}}, func(t *testing.T, _ *Server, conn net.Conn) {
		io.WriteString(conn, signed("POST", "/v1/calls", callBody("c1", "slow", `{}`)))
		answer := make([]byte, 15)
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 200 OK" {
			t.Fatalf("got %q, %v", answer, err)
		}
	})
}
