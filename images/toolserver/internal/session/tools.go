package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/tool"
)

// Tools are the four tools of sessions.
func (m *Manager) Tools() []tool.Tool {
	const one = `{"type": "object", "properties": {"session": {"type": "string", "description": "Name of the session."}}, "required": ["session"], "additionalProperties": false}`
	return []tool.Tool{
		&operation{m, "session_create",
			"Make a shell that keeps its directory, variables, functions and background processes from one session_run to the next. It has no terminal.",
			`{
  "type": "object",
  "properties": {
    "session": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$", "description": "A name for it; one is made up when missing."},
    "workdir": {"type": "string", "description": "Directory to begin in; the work directory when missing."},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables to add."}
  },
  "additionalProperties": false
}`, m.runCreate},
		&operation{m, "session_run",
			"Run a command in a session and return what it, and background processes since the last command, printed. Standard input is at end of file. At its time limit the command is interrupted, then killed.",
			`{
  "type": "object",
  "properties": {
    "session": {"type": "string", "description": "Name of the session."},
    "command": {"type": "string", "description": "The command line, as given to the shell."},
    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Time limit in milliseconds."}
  },
  "required": ["session", "command"],
  "additionalProperties": false
}`, m.runCommand},
		&operation{m, "session_interrupt", "Interrupt the command that runs in a session, as Ctrl-C would.", one, m.runInterrupt},
		&operation{m, "session_close", "End a session and kill everything that runs in it.", one, m.runClose},
	}
}

// operation is one of the tools; they differ in what they do, not in how they
// are called.
type operation struct {
	manager     *Manager
	name        string
	description string
	parameters  string
	do          func(context.Context, arguments, tool.Call) tool.Result
}

type arguments struct {
	Session   string            `json:"session"`
	Command   string            `json:"command"`
	TimeoutMS int64             `json:"timeout_ms"`
	Workdir   string            `json:"workdir"`
	Env       map[string]string `json:"env"`
}

func (o *operation) Name() string                { return o.name }
func (o *operation) Description() string         { return o.description }
func (o *operation) Parameters() json.RawMessage { return json.RawMessage(o.parameters) }

// Run does it and measures it.
func (o *operation) Run(ctx context.Context, call tool.Call) tool.Result {
	reading := o.manager.base.Probe.Begin()
	var args arguments
	var result tool.Result
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		result = tool.Result{Class: tool.Malformed, Output: "bad arguments: " + err.Error()}
	} else {
		result = o.do(ctx, args, call)
	}
	reading.End(&result.Facts)
	return result
}

// named is the data of a call that concerns one session.
type named struct {
	Session string `json:"session"`
}

func failed(err error) tool.Result { return tool.Result{Class: tool.Failed, Output: err.Error()} }

func (m *Manager) runCreate(ctx context.Context, args arguments, _ tool.Call) tool.Result {
	if name, bad := launch.BadName(args.Env); bad {
		return tool.Result{Class: tool.Malformed, Output: fmt.Sprintf("env: %q cannot be the name of a variable, or its value holds a NUL byte", name)}
	}
	created, err := m.create(ctx, args.Session, m.base.Path(args.Workdir), args.Env)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Class: tool.OK, Output: "session " + created.name + " is ready", Data: named{created.name}}
}

func (m *Manager) runCommand(ctx context.Context, args arguments, call tool.Call) tool.Result {
	s, err := m.find(args.Session)
	if err != nil {
		return failed(err)
	}
	if s.ended() {
		return failed(refuse("[%s]", s.obituary()))
	}
	if strings.Contains(args.Command, "\x00") {
		return tool.Result{Class: tool.Malformed, Output: "a command cannot contain NUL bytes"}
	}
	reading := m.base.Probe.Begin()
	limit := m.base.Limit(args.TimeoutMS)
	return s.run(ctx, args.Command, limit, call.Emit).result(s, limit, reading)
}

func (m *Manager) runInterrupt(_ context.Context, args arguments, _ tool.Call) tool.Result {
	s, err := m.find(args.Session)
	if err != nil {
		return failed(err)
	}
	text := "interrupted the command in session " + s.name
	switch found, over := s.interruptRunning(); {
	case !found:
		text = "nothing runs in session " + s.name
	case !over:
		text += "; it is still running, interrupt it again if it goes on"
	}
	return tool.Result{Class: tool.OK, Output: text, Data: named{s.name}}
}

func (m *Manager) runClose(_ context.Context, args arguments, _ tool.Call) tool.Result {
	s, err := m.remove(args.Session)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Class: tool.OK, Output: "session " + s.name + " is closed", Data: named{s.name}}
}

// result is what the model and the record get to see of a command.
func (r ran) result(s *session, limit time.Duration, reading facts.Reading) tool.Result {
	result := tool.Result{Data: named{s.name}}
	reading.End(&result.Facts)
	result.Facts.OutputBytes = r.text.Total
	result.Facts.Truncated = r.text.Truncated
	outcome := proc.Outcome{TimedOut: r.timedOut, Stopped: r.stopped, Known: !r.busy}
	if r.over {
		outcome.Status = r.shellStatus
	} else {
		outcome.Status = exited(r.status)
	}
	launch.Judge(outcome, &result)
	note := ""
	switch {
	case r.busy && r.timedOut:
		note = fmt.Sprintf("[session %s was busy with another command for %d ms; this one did not run]", s.name, limit.Milliseconds())
	case r.over && r.timedOut:
		note = fmt.Sprintf("[timed out after %d ms and could not be interrupted: the session was ended; session_create makes a new one]", limit.Milliseconds())
	case r.over && r.stopped:
		note = "[stopped: the sandbox takes no more calls]"
	case r.over:
		result.Class = tool.Failed
		note = "[" + s.obituary() + "]"
	case r.timedOut:
		note = fmt.Sprintf("[timed out after %d ms; the session goes on]", limit.Milliseconds())
	default:
		note = launch.Ending(outcome, result.Facts, limit)
	}
	result.Output = launch.Append(r.text.String, note)
	return result
}

// exited is the wait status of an exit code.
func exited(code int) syscall.WaitStatus { return syscall.WaitStatus(code << 8) }
