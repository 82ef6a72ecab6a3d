package server

import (
	"net/http"
	"strings"
	"time"

	"rollcage.dev/toolserver/internal/token"
)

const (
	replayedHeader  = "Rollcage-Replayed"
	mostCallsHeader = "Rollcage-Most-Calls"
)

// entered is a call that is known, and its request.
type entered struct {
	begun
	id string
}

func (s *Server) postCall(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	call, refused := s.enter(w, r, claims)
	if refused != nil {
		return refused
	}
	switch {
	case call.run == nil:
	case call.waits:
		go call.run()
	default:
		// Here and now, since every hand-over to another goroutine may cost
		// the time of two thread switches. Whether the client still waits
		// makes no difference to it; its connection is held meanwhile, and
		// there are many more of those than calls that can run.
		call.run()
	}
	select {
	case <-call.Done():
		return s.answer(w, call)
	case <-r.Context().Done():
		// The call goes on; its result waits for the retry.
		return nil
	}
}

// enter reads a call and finds or makes its journal entry; the caller sees to
// it that a new one runs.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, claims token.Claims) (entered, *refusal) {
	// A stopping server still answers repeats; the gate refuses the rest.
	if !s.ready() && !s.stopping() {
		return entered{}, errNotReady
	}
	most, refused := parseMostCalls(r)
	if refused != nil {
		return entered{}, refused
	}
	body, release, refused := s.readBody(w, r)
	if refused != nil {
		return entered{}, refused
	}
	request, refused := parseRequest(body)
	if refused == nil {
		refused = s.bind(claims)
	}
	if refused != nil {
		release()
		return entered{}, refused
	}
	call, err := s.begin(s.plan(request), most, release)
	if err != nil {
		release()
		return entered{}, s.countRefusal(refuse(err))
	}
	if !call.fresh {
		release()
		s.count.replays.Add(1)
	}
	return entered{call, request.CallID}, nil
}

func (s *Server) countRefusal(refused *refusal) *refusal {
	switch refused.Code {
	case "busy":
		s.count.busy.Add(1)
	case "call_conflict":
		s.count.conflicts.Add(1)
	}
	return refused
}

func (s *Server) answer(w http.ResponseWriter, call entered) *refusal {
	outcome, err := s.journal.Outcome(call.Call)
	if err != nil {
		return refuse(err)
	}
	if !call.fresh {
		w.Header().Set(replayedHeader, "true")
	}
	writeJSON(w, outcome.Status, outcome.Body)
	return nil
}

func (s *Server) getCall(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	id := strings.TrimPrefix(r.URL.EscapedPath(), callsPath+"/")
	if !callIDPattern.MatchString(id) {
		return badRequest("the call id must match " + callIDPattern.String())
	}
	wait, refused := parseWait(r)
	if refused != nil {
		return refused
	}
	call, err := s.journal.Lookup(id)
	if err != nil {
		return refuse(err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-call.Done():
	case <-timer.C:
	case <-r.Context().Done():
		return nil
	}
	select {
	case <-call.Done():
		return s.answer(w, entered{begun{Call: call}, id})
	default:
		writeJSON(w, http.StatusAccepted, []byte(`{"state":"running"}`))
		return nil
	}
}
