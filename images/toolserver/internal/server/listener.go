package server

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	// outsideConnections is far above what gateways and probes keep open.
	outsideConnections = 256
	// insideConnections is what the model can take from the port it can reach
	// from inside. They never count against the gateway's.
	insideConnections = 8
	// headerTime is what anyone gets before a token has been seen.
	headerTime = 5 * time.Second
)

// HTTPServer returns the server with its limits. Only HTTP/1.1: one request at
// a time on a connection is what the limits are made for.
func (s *Server) HTTPServer() *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      s.Handler(),
		Protocols:                    &protocols,
		ReadHeaderTimeout:            headerTime,
		IdleTimeout:                  5 * time.Minute,
		MaxHeaderBytes:               8 << 10,
		DisableGeneralOptionsHandler: true,
		// It would let anyone who can connect write into the log.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// Limit bounds the connections of a listener. Unix sockets have no addresses
// to tell friend from foe by; their file permissions do that.
func (s *Server) Limit(inner net.Listener, own []netip.Addr) net.Listener {
	l := &limited{Listener: inner, server: s, own: map[netip.Addr]bool{},
		outside: newBudget(outsideConnections), inside: newBudget(insideConnections)}
	for _, address := range own {
		l.own[plain(address)] = true
	}
	return l
}

type limited struct {
	net.Listener
	server          *Server
	own             map[netip.Addr]bool
	outside, inside *budget
}

// Accept closes what is beyond the limit at once; waiting would let it queue.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		quota := l.outside
		if l.fromInside(conn) {
			quota = l.inside
		}
		if quota.take(1) {
			return newConn(conn, quota), nil
		}
		l.server.count.connections.Add(1)
		conn.Close()
	}
}

func (l *limited) fromInside(conn net.Conn) bool {
	remote, isTCP := conn.RemoteAddr().(*net.TCPAddr)
	local, _ := conn.LocalAddr().(*net.TCPAddr)
	if !isTCP || local == nil {
		return false
	}
	from, to := plain(remote.AddrPort().Addr()), plain(local.AddrPort().Addr())
	return from == to || from.IsLoopback() || to.IsLoopback() || l.own[from]
}

// plain makes one address of its spellings.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
