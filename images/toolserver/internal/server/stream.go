package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"rollcage.dev/toolserver/internal/token"
)

// heartbeat keeps idle proxies from closing the connection, and finds out
// about clients that are gone.
const heartbeat = 10 * time.Second

// streamCall is postCall for a caller who watches. Watching changes nothing
// about the call: not its result, not its pace, not whether it runs.
func (s *Server) streamCall(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	if !s.streams.take(1) {
		s.count.busy.Add(1)
		return errBusy
	}
	defer s.streams.give(1)
	call, refused := s.enter(w, r, claims)
	if refused != nil {
		return refused
	}
	if call.run != nil {
		go call.run()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if !call.fresh {
		w.Header().Set(replayedHeader, "true")
	}
	w.WriteHeader(http.StatusOK)
	out := &eventWriter{w: w, control: http.NewResponseController(w)}
	s.follow(out, r, call)
	return nil
}

func (s *Server) follow(out *eventWriter, r *http.Request, call entered) {
	var watching *watcher
	var wake <-chan struct{}
	if hub := s.hubs.find(call.id); hub != nil {
		watching = hub.watch()
		defer watching.close()
		wake = watching.wake
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	out.flush()
	for out.err == nil {
		select {
		case <-wake:
			out.output(watching.take())
		case <-beat.C:
			out.comment("alive")
		case <-call.Done():
			if watching != nil {
				out.output(watching.take())
			}
			out.final(s.ending(call))
			return
		case <-r.Context().Done():
			return
		}
	}
}

// ending is the last event's name and data.
func (s *Server) ending(call entered) (name string, data []byte) {
	outcome, err := s.journal.Outcome(call.Call)
	if err == nil && outcome.Status == http.StatusOK {
		return "result", outcome.Body
	}
	if err != nil {
		refused := refuse(err)
		return "error", refused.body()
	}
	return "error", outcome.Body
}

// eventWriter writes server-sent events and keeps the first error.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

// chunk is the data of an output event: text where the bytes are UTF-8, else
// base64, so that putting the chunks together gives the exact bytes.
type chunk struct {
	Stream string  `json:"stream"`
	Text   *string `json:"text,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
}

func (e *eventWriter) output(events []event) {
	for _, event := range events {
		if event.gap > 0 {
			e.write("gap", fmt.Appendf(nil, `{"bytes":%d}`, event.gap))
			continue
		}
		c := chunk{Stream: event.stream}
		if utf8.Valid(event.data) {
			text := string(event.data)
			c.Text = &text
		} else {
			c.Base64 = event.data
		}
		data, err := json.Marshal(c)
		if err != nil {
			e.err = err
			return
		}
		e.write("output", data)
	}
	e.flush()
}

func (e *eventWriter) final(name string, data []byte) {
	e.write(name, data)
	e.flush()
}

func (e *eventWriter) comment(text string) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, ": %s\n\n", text)
	}
	e.flush()
}

// write relies on data having no line break, as JSON on one line has none.
func (e *eventWriter) write(name string, data []byte) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, data)
	}
}

func (e *eventWriter) flush() {
	if e.err == nil {
		e.err = e.control.Flush()
	}
}
