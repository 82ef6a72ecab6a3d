package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

// listenOn serves a real listener with all its limits.
func listenOn(t *testing.T, network, address string) (*Server, string) {
	t.Helper()
	s := makeServer(t, Options{Tools: []tool.Tool{echo}})
	s.Prepare(nil)
	inner, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	web := s.HTTPServer()
	go web.Serve(s.Limit(inner, nil))
	t.Cleanup(func() { web.Close() })
	return s, inner.Addr().String()
}

// dial sends raw bytes and hands over the connection.
func dial(t *testing.T, network, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

const health = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

func answers(conn net.Conn) bool {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && response.StatusCode == 200
}

func TestTheModelCanTakeOnlyItsOwnConnections(t *testing.T) {
	s, address := listenOn(t, "tcp", "127.0.0.1:0")
	var held []net.Conn
	for i := range insideConnections {
		conn := dial(t, "tcp", address, health)
		if !answers(conn) {
			t.Fatalf("connection %d is refused", i)
		}
		held = append(held, conn)
	}
	beyond := dial(t, "tcp", address, "")
	if _, err := beyond.Read(make([]byte, 1)); err == nil {
		t.Fatal("one connection too many is served")
	}
	if s.count.connections.Load() != 1 {
		t.Fatal("the refusal is not counted")
	}
	held[0].Close()
	for {
		// The place is free once the server has noticed.
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, health)
		served := answers(conn)
		conn.Close()
		if served {
			return
		}
	}
}

func TestUnixSocketsHaveNoInside(t *testing.T) {
	_, address := listenOn(t, "unix", filepath.Join(t.TempDir(), "s"))
	for i := range 3 * insideConnections {
		if !answers(dial(t, "unix", address, health)) {
			t.Fatalf("connection %d is refused", i)
		}
	}
}

// pair is a connection that has nothing but addresses.
type pair struct {
	net.Conn
	remote, local string
}

func (p pair) RemoteAddr() net.Addr { return tcp(p.remote) }
func (p pair) LocalAddr() net.Addr  { return tcp(p.local) }

func tcp(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }

func TestWhoIsInside(t *testing.T) {
	cases := []struct {
		name, remote, local string
		inside              bool
	}{
		{"the gateway", "10.0.0.9:4000", "10.1.0.5:8750", false},
		{"the sandbox's own address", "10.1.0.5:4000", "10.1.0.5:8750", true},
		{"its own address in the other family's spelling", "[::ffff:10.1.0.5]:4000", "10.1.0.5:8750", true},
		{"loopback", "127.0.0.1:4000", "127.0.0.1:8750", true},
		{"another loopback address", "127.9.9.9:4000", "127.0.0.1:8750", true},
		{"loopback of IPv6", "[::1]:4000", "[::1]:8750", true},
		{"a second address of the sandbox", "10.2.0.5:4000", "10.1.0.5:8750", true},
		{"a link-local address with its zone", "[fe80::5%eth0]:4000", "[fd00::5]:8750", true},
		{"IPv6 from elsewhere", "[fd00::9]:4000", "[fd00::5]:8750", false},
	}
	own := []netip.Addr{netip.MustParseAddr("10.2.0.5"), netip.MustParseAddr("fe80::5")}
	l := (&Server{}).Limit(nil, own).(*limited)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := l.fromInside(pair{remote: c.remote, local: c.local}); got != c.inside {
				t.Fatalf("inside: %v", got)
			}
		})
	}
}

func TestNoBodyIsReadForAStranger(t *testing.T) {
	_, address := listenOn(t, "tcp", "127.0.0.1:0")
	cases := map[string]string{
		"who waits to be asked for it": "Content-Length: 100\r\nExpect: 100-continue\r\n\r\n",
		"who announces 2 GiB":          "Content-Length: 2147483648\r\n\r\n",
		"who sends chunks":             "Transfer-Encoding: chunked\r\n\r\nffffff\r\nxxx",
		"who sends both lengths":       "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	}
	for name, rest := range cases {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, "tcp", address, "POST /v1/calls HTTP/1.1\r\nHost: x\r\n"+rest)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || response.StatusCode != 401 || !response.Close {
				t.Fatalf("got %+v, %v", response, err)
			}
		})
	}
}

func TestUnreasonableHeadersAreRefused(t *testing.T) {
	_, address := listenOn(t, "tcp", "127.0.0.1:0")
	for name, text := range map[string]string{
		"headers without end":       "GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
		"an absolute target":        "GET http://other/healthz HTTP/1.1\r\nHost: x\r\n\r\n",
		"a target for proxies":      "CONNECT other:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"options for the server":    "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
		"two lengths that differ":   "POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		"a length that is negative": "POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, "tcp", address, text)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err == nil && (response.StatusCode < 400 || response.StatusCode >= 500) {
				t.Fatalf("got %d", response.StatusCode)
			}
		})
	}
}

func TestASignedCallMayWaitToBeAskedForItsBody(t *testing.T) {
	_, address := listenOn(t, "tcp", "127.0.0.1:0")
	body := callBody("c1", "echo", `{}`)
	conn := dial(t, "tcp", address, fmt.Sprintf(
		"POST /v1/calls HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		sign("r1", "act"), len(body)))
	from := bufio.NewReader(conn)
	if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("got %q, %v", line, err)
	}
	from.ReadString('\n')
	io.WriteString(conn, body)
	if response, err := http.ReadResponse(from, nil); err != nil || response.StatusCode != 200 {
		t.Fatalf("got %+v, %v", response, err)
	}
}
