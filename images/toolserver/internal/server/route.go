package server

import (
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"rollcage.dev/toolserver/internal/token"
)

const (
	bootHeader = "Rollcage-Boot"
	callsPath  = "/v1/calls"
)

// handler answers a request or says why not.
type handler func(s *Server, w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal

// route is one method of one path. No scopes means that anyone may ask.
type route struct {
	handle handler
	scopes []token.Scope
}

var (
	act    = []token.Scope{token.Act}
	either = []token.Scope{token.Act, token.Inspect}
)

var routes = map[string]map[string]route{
	"/healthz":         {"GET": {(*Server).health, nil}},
	"/readyz":          {"GET": {(*Server).readiness, nil}},
	callsPath:          {"POST": {(*Server).postCall, act}},
	callsPath + "/":    {"GET": {(*Server).getCall, act}},
	"/v1/calls/stream": {"POST": {(*Server).streamCall, act}},
	"/v1/seal":         {"POST": {(*Server).postSeal, act}},
	"/v1/tools":        {"GET": {(*Server).listTools, either}},
	"/v1/state":        {"GET": {(*Server).state, either}},
	"/v1/files":        {"GET": {(*Server).getFile, act}, "PUT": {(*Server).putFile, act}},
	"/v1/tree":         {"GET": {(*Server).getTree, act}, "PUT": {(*Server).putTree, act}},
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w = &patientWriter{ResponseWriter: w}
	defer s.recoverPanic(w)
	if refused := s.dispatch(w, r); refused != nil {
		writeRefusal(w, r, refused)
	}
}

func (s *Server) dispatch(w http.ResponseWriter, r *http.Request) *refusal {
	if refused := checkHygiene(r); refused != nil {
		return refused
	}
	methods := routes[routeOf(r)]
	if methods == nil {
		return errNotFound
	}
	found, known := methods[r.Method]
	if !known {
		return errMethod
	}
	if found.scopes == nil {
		return found.handle(s, w, r, token.Claims{})
	}
	claims, refused := s.authorize(r, found.scopes)
	if refused != nil {
		return refused
	}
	w.Header().Set(bootHeader, s.options.BootID)
	// A gateway that has seen this sandbox before does not want its successor.
	if expected := r.Header.Get(bootHeader); expected != "" && expected != s.options.BootID {
		return errBoot
	}
	return found.handle(s, w, r, claims)
}

// routeOf compares paths as they were sent: nothing is cleaned or unescaped,
// so there is one spelling of each.
func routeOf(r *http.Request) string {
	path := r.URL.EscapedPath()
	if _, known := routes[path]; !known && strings.HasPrefix(path, callsPath+"/") {
		return callsPath + "/"
	}
	return path
}

func checkHygiene(r *http.Request) *refusal {
	switch {
	case !strings.HasPrefix(r.RequestURI, "/") || strings.Contains(r.URL.EscapedPath(), "//"):
		return badRequest("the request's target is not a plain path")
	case r.Header.Get("Content-Encoding") != "":
		return badRequest("no content encoding is supported")
	case r.Method == http.MethodGet && r.ContentLength != 0:
		return badRequest("a GET has no body")
	}
	return nil
}

// authorize also keeps other rollouts out; it binds nothing.
func (s *Server) authorize(r *http.Request, scopes []token.Scope) (token.Claims, *refusal) {
	headers := r.Header.Values("Authorization")
	// Two of them would leave open which was meant.
	if len(headers) != 1 {
		headers = []string{""}
	}
	claims, err := s.verifier.Verify(headers[0], s.options.Now(), scopes...)
	if err != nil {
		s.count.refused(err.Code)
		return token.Claims{}, refuse(err)
	}
	if claims.Scope == token.Act && !s.fence.Admits(claims.Rollout) {
		s.count.misroutes.Add(1)
		return token.Claims{}, errBound
	}
	return claims, nil
}

// bind takes the sandbox for the rollout. It is the last thing that may refuse
// a request before it has effects, so a bad request binds nothing.
func (s *Server) bind(claims token.Claims) *refusal {
	if !s.fence.Bind(claims.Rollout) {
		s.count.misroutes.Add(1)
		return errBound
	}
	if s.options.Taken != nil {
		s.options.Taken()
	}
	return nil
}

func (s *Server) recoverPanic(w http.ResponseWriter) {
	cause := recover()
	if cause == nil {
		return
	}
	// The server's way to cut a connection; not a fault.
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	s.count.internal.Add(1)
	slog.Error("handler_panicked", "cause", cause, "stack", string(debug.Stack()))
	writeJSON(w, errInternal.Status, errInternal.body())
}

func writeRefusal(w http.ResponseWriter, r *http.Request, refused *refusal) {
	if r.ContentLength != 0 {
		// What was not read is not wanted: the connection ends. The library
		// still throws away what it takes for a small rest, so that the client
		// gets to read the answer, and would wait for it for ever.
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(headerTime))
	}
	writeJSON(w, refused.Status, refused.body())
}

// writeJSON says the same head again and again, but for the length: gateways
// know it by that. So no date, and never in chunks.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	header := w.Header()
	header["Date"] = nil
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
