package server

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"rollcage.dev/toolserver/internal/name"
	"rollcage.dev/toolserver/internal/strictjson"
)

const (
	maxCallBytes = 4 << 20
	// maxWait is longer than any call may take.
	maxWait = 10 * time.Minute
)

var callIDPattern = name.New("A-Za-z0-9_.:-", 200)

// request is the body of a call. Arguments are not judged here: what is wrong
// with them is the model's business and gets a result.
type request struct {
	CallID    string
	Tool      string
	Arguments json.RawMessage
}

func parseRequest(body []byte) (request, *refusal) {
	// The outer object alone: a name that stands twice inside the arguments is
	// told to the model and not to the gateway.
	fields, err := strictjson.Fields(body, "call_id", "tool", "arguments")
	if err != nil {
		return request{}, badRequest("the body is not a call: " + err.Error())
	}
	r := request{Arguments: fields["arguments"]}
	if json.Unmarshal(fields["call_id"], &r.CallID) != nil || !callIDPattern.MatchString(r.CallID) {
		return request{}, badRequest("call_id must match " + callIDPattern.String())
	}
	var tool *string
	if json.Unmarshal(fields["tool"], &tool) != nil || tool == nil {
		return request{}, badRequest("tool must be a text")
	}
	r.Tool = *tool
	if r.Arguments == nil {
		r.Arguments = json.RawMessage("{}")
	}
	return r, nil
}

// readBody reads a call's body within the shared budget. release gives the
// budget back and must be called once the arguments are no longer needed.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), err *refusal) {
	switch {
	case r.ContentLength < 0:
		// The length decides what is reserved before anything is read.
		return nil, nil, badRequest("a call needs a Content-Length")
	case r.ContentLength > maxCallBytes:
		return nil, nil, errTooLarge
	}
	size := r.ContentLength
	if !s.bodies.take(size) {
		s.count.busy.Add(1)
		return nil, nil, errBusy
	}
	release = func() { s.bodies.give(size) }
	body = make([]byte, size)
	if _, err := io.ReadFull(patientReader(r.Context(), w, r), body); err != nil {
		release()
		return nil, nil, badRequest("the body ended early or came too slowly")
	}
	// Nothing is left to read, so a refusal need not end the connection.
	r.ContentLength = 0
	return body, release, nil
}

func parseWait(r *http.Request) (time.Duration, *refusal) {
	text := r.URL.Query().Get("wait_ms")
	if text == "" {
		return 0, nil
	}
	ms, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, badRequest("wait_ms must be a count of milliseconds")
	}
	return min(time.Duration(ms)*time.Millisecond, maxWait), nil
}

// parseMostCalls reads how many calls the rollout may make in all; a gateway
// that sends calls before it has counted them says so with each.
func parseMostCalls(r *http.Request) (int, *refusal) {
	text := r.Header.Get(mostCallsHeader)
	if text == "" {
		return math.MaxInt, nil
	}
	most, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, badRequest(mostCallsHeader + " must be a count of calls")
	}
	return int(most), nil
}
