package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"rollcage.dev/toolserver/internal/journal"
	"rollcage.dev/toolserver/internal/tool"
)

// maxToolName bounds what an invented name can add to an answer.
const maxToolName = 200

// plan is what will be done about a request: a tool to run, or a text that
// says what is wrong.
type plan struct {
	id          string
	tool        string
	run         tool.Tool // nil when malformed
	arguments   json.RawMessage
	malformed   string
	fingerprint journal.Fingerprint
}

// plan decides; it starts nothing.
func (s *Server) plan(r request) plan {
	p := plan{id: r.CallID, tool: r.Tool}
	value, canonical, err := journal.Canonical(r.Arguments)
	if err != nil {
		// Not one value with one meaning, so its spelling must stand for it.
		canonical = r.Arguments
	}
	p.arguments = canonical
	p.fingerprint = journal.FingerprintOf(r.Tool, canonical)
	found, known := s.tools[r.Tool]
	if !known {
		p.tool = shorten(r.Tool, maxToolName)
		p.malformed = fmt.Sprintf("There is no tool %q. The tools are: %s.", p.tool, s.toolNames())
		return p
	}
	problems := []string{}
	if err != nil {
		problems = append(problems, "the arguments are not usable: "+err.Error())
	} else if _, isObject := value.(map[string]any); !isObject {
		problems = append(problems, "the arguments must be an object")
	} else {
		if found.schema.Settle(value) {
			// The fingerprint stays that of what was sent.
			p.arguments, _ = json.Marshal(value)
		}
		problems = found.schema.Check(value)
	}
	if len(problems) > 0 {
		p.malformed = fmt.Sprintf("Bad arguments for %s: %s. Its arguments: %s.",
			r.Tool, strings.Join(problems, "; "), found.schema.Describe())
		return p
	}
	p.run = found.Tool
	return p
}

func (s *Server) toolNames() string {
	return strings.Join(slices.Sorted(maps.Keys(s.tools)), ", ")
}

// begun is a call that stands in the journal.
type begun struct {
	*journal.Call
	fresh bool
	// run, when not nil, does the work and must be called, once.
	run func()
	// waits says that run waits for a place first.
	waits bool
}

// begin enters the planned call into the journal and says what is to be done
// for its answer, unless it is a new one beyond the most'th. release is called
// when the arguments are no longer needed, but only for a new call.
func (s *Server) begin(p plan, most int, release func()) (begun, error) {
	gate := s.calls
	if p.tool == urgentTool {
		gate = s.urgent
	}
	var place ticket
	var out *hub
	s.entry.RLock()
	defer s.entry.RUnlock()
	call, fresh, err := s.journal.Begin(p.id, p.fingerprint, most, func() (err error) {
		if s.open.Err() != nil {
			return context.Cause(s.open)
		}
		if p.run == nil {
			return nil
		}
		if place, err = gate.enter(); err != nil {
			return err
		}
		out = s.hubs.open(p.id)
		return nil
	})
	if err != nil || !fresh {
		return begun{Call: call}, err
	}
	if p.run == nil {
		s.journal.Finish(call, s.encode(p, malformed(p.malformed)))
		release()
		return begun{Call: call, fresh: true}, nil
	}
	s.running.Add(1)
	return begun{call, true, func() {
		defer s.running.Done()
		defer release()
		defer s.hubs.close(p.id)
		defer gate.leave()
		if err := place.wait(s.open); err != nil {
			s.journal.Withdraw(call, err)
			return
		}
		s.journal.Finish(call, s.execute(p, out))
	}, !place.given()}, nil
}

func (s *Server) execute(p plan, out *hub) (outcome journal.Outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			s.count.internal.Add(1)
			slog.Error("tool_panicked", "tool", p.tool, "call", p.id, "cause", cause, "stack", string(debug.Stack()))
			outcome = journal.Outcome{Status: errInternal.Status, Body: errInternal.body()}
		}
	}()
	s.pace.enter()
	defer s.pace.leave()
	result := p.run.Run(s.work, tool.Call{ID: p.id, Arguments: p.arguments, Emit: out.publish})
	// Stopping kills what runs. Shown as a result it would be the model's own
	// failure, which it is not; what succeeded all the same is one. What the
	// seal ends has a result: its rollout is over, and is not lost.
	if s.stopping() && result.Class != tool.OK {
		return journal.Outcome{Status: errInterrupted.Status, Body: errInterrupted.body()}
	}
	return s.encode(p, result)
}

// answer is a result on the wire.
type answer struct {
	CallID string          `json:"call_id"`
	Tool   string          `json:"tool"`
	Class  tool.Class      `json:"class"`
	Output string          `json:"output"`
	Data   json.RawMessage `json:"data"`
	Facts  tool.Facts      `json:"facts"`
}

// encode makes the bytes that every repeat is answered with.
func (s *Server) encode(p plan, result tool.Result) journal.Outcome {
	data, err := json.Marshal(result.Data)
	if err != nil {
		panic(fmt.Errorf("data of %s: %w", p.tool, err))
	}
	if string(data) == "null" {
		data = []byte("{}")
	}
	result.Facts.BootID = s.options.BootID
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(answer{p.id, p.tool, result.Class, result.Output, data, result.Facts}); err != nil {
		panic(fmt.Errorf("result of %s: %w", p.tool, err))
	}
	s.count.finished(result.Class)
	return journal.Outcome{Status: http.StatusOK, Body: bytes.TrimSpace(body.Bytes())}
}

func malformed(text string) tool.Result {
	return tool.Result{
		Class: tool.Malformed, Output: text,
		Facts: tool.Facts{OutputBytes: int64(len(text)), Pressure: tool.Pressure{Source: "none"}},
	}
}

func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
