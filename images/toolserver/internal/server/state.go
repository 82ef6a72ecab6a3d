package server

import (
	"encoding/json"
	"net/http"
	"time"

	"rollcage.dev/toolserver/internal/token"
)

// state is the sandbox's own account of itself: what recovery is built on.
type state struct {
	Sandbox   string       `json:"sandbox"`
	BootID    string       `json:"boot_id"`
	BoundTo   *string      `json:"bound_to"`
	Ready     bool         `json:"ready"`
	Sealed    bool         `json:"sealed"`
	Setup     setupState   `json:"setup"`
	Journal   journalState `json:"journal"`
	Counters  counts       `json:"counters"`
	StartedAt string       `json:"started_at"`
	UptimeMS  int64        `json:"uptime_ms"`
}

type setupState struct {
	State  string `json:"state"`
	Output string `json:"output"`
}

type journalState struct {
	Calls        int `json:"calls"`
	ResultsBytes int `json:"results_bytes"`
}

func (s *Server) state(w http.ResponseWriter, _ *http.Request, _ token.Claims) *refusal {
	setup, output := s.setup.get()
	calls, bytes := s.journal.Size()
	return writeValue(w, state{
		Sandbox:   s.options.Sandbox,
		BootID:    s.options.BootID,
		BoundTo:   s.fence.Bound(),
		Ready:     s.ready(),
		Sealed:    s.sealed(),
		Setup:     setupState{setup, output},
		Journal:   journalState{calls, bytes},
		Counters:  s.count.snapshot(),
		StartedAt: s.started.UTC().Format(time.RFC3339Nano),
		UptimeMS:  s.options.Now().Sub(s.started).Milliseconds(),
	})
}

// definition is a tool as a trainer would show it to the model.
type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

func (s *Server) listTools(w http.ResponseWriter, _ *http.Request, _ token.Claims) *refusal {
	definitions := []definition{}
	for _, t := range s.options.Tools {
		definitions = append(definitions, definition{t.Name(), t.Description(), t.Parameters()})
	}
	return writeValue(w, map[string]any{"tools": definitions})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ token.Claims) *refusal {
	writeJSON(w, http.StatusOK, []byte(`{}`))
	return nil
}

// readiness gives no reason: whoever asks without a token learns nothing else.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request, _ token.Claims) *refusal {
	status := http.StatusOK
	if !s.ready() {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, []byte(`{}`))
	return nil
}

func writeValue(w http.ResponseWriter, value any) *refusal {
	body, err := json.Marshal(value)
	if err != nil {
		return errInternal
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}
