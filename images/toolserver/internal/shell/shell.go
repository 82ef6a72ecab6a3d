// Package shell is the tool that runs one command in a shell of its own and
// leaves nothing of it running. Shells that live on belong to session.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/tool"
	"rollcage.dev/toolserver/internal/truncate"
)

// Tool is the tool `shell`.
type Tool struct {
	base  *launch.Base
	shell *Shell
}

// New makes the tool.
func New(base *launch.Base, shell *Shell) *Tool { return &Tool{base: base, shell: shell} }

func (*Tool) Name() string { return "shell" }

func (*Tool) Description() string {
	return "Run a command in a new shell and return what it prints. Standard input is at end of file. " +
		"Everything the command leaves running is killed when it ends; use a session for background processes. " +
		"Long output is cut in the middle."
}

func (*Tool) Parameters() json.RawMessage {
	return json.RawMessage(`{
  "type": "object",
  "properties": {
    "command": {"type": "string", "description": "The command line, as given to the shell."},
    "timeout_ms": {"type": "integer", "minimum": 1, "description": "Time limit in milliseconds."},
    "workdir": {"type": "string", "description": "Directory to run in; the work directory when missing."},
    "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Environment variables to add."},
    "streams": {"type": "string", "enum": ["combined", "separate"], "description": "Whether standard output and standard error are returned as one text (default) or apart."}
  },
  "required": ["command"],
  "additionalProperties": false
}`)
}

type arguments struct {
	Command   string            `json:"command"`
	TimeoutMS int64             `json:"timeout_ms"`
	Workdir   string            `json:"workdir"`
	Env       map[string]string `json:"env"`
	Streams   string            `json:"streams"`
}

// streams is the data of a call that asked for them apart.
type streams struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

// Run runs the command.
func (t *Tool) Run(ctx context.Context, call tool.Call) tool.Result {
	var args arguments
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		return tool.Result{Class: tool.Malformed, Output: "bad arguments: " + err.Error()}
	}
	if name, bad := launch.BadName(args.Env); bad {
		return tool.Result{Class: tool.Malformed, Output: fmt.Sprintf("env: %q cannot be the name of a variable, or its value holds a NUL byte", name)}
	}
	return t.run(ctx, args, t.base.Limit(args.TimeoutMS), call.Emit)
}

// Prepare runs a command of the set-up, whose limit is not the model's.
func (t *Tool) Prepare(ctx context.Context, command string, limit time.Duration) tool.Result {
	return t.run(ctx, arguments{Command: command}, limit, nil)
}

func (t *Tool) run(ctx context.Context, args arguments, limit time.Duration, emit func(string, []byte)) tool.Result {
	reading := t.base.Probe.Begin()
	command := proc.Command{
		Dir:   t.base.Path(args.Workdir),
		Env:   t.base.Environment.With(args.Env),
		Limit: limit,
	}
	apart := args.Streams == "separate"
	size := t.base.OutputBytes
	if apart {
		size /= 2
	}
	stdout, stderr := truncate.New(size), truncate.New(size)
	if apart {
		command.Stdout = launch.Sink(stdout, "stdout", emit)
		command.Stderr = launch.Sink(stderr, "stderr", emit)
	} else {
		command.Stdout = launch.Sink(stdout, "output", emit)
	}

	var result tool.Result
	outcome, err := t.shell.run(ctx, command, args.Command)
	reading.End(&result.Facts)
	if err != nil {
		result.Class, result.Output = tool.Failed, failure(err, command.Dir)
		return result
	}
	launch.Judge(outcome, &result)
	out, errs := stdout.Text(), stderr.Text()
	result.Facts.OutputBytes = out.Total + errs.Total
	result.Facts.Truncated = out.Truncated || errs.Truncated
	result.Output = out.String
	if apart {
		result.Data = streams{Stdout: out.String, Stderr: errs.String}
		if errs.Total > 0 {
			result.Output = launch.Append(out.String, "[stderr]\n"+errs.String)
		}
	}
	result.Output = launch.Append(result.Output, launch.Ending(outcome, result.Facts, limit))
	return result
}

func failure(err error, directory string) string {
	var missing errNoShell
	if errors.As(err, &missing) {
		return missing.Error()
	}
	var start errStart
	if errors.As(err, &start) {
		return launch.StartFailure(start.cause, start.program, directory)
	}
	return "cannot run: " + launch.Reason(err)
}

var _ tool.Tool = (*Tool)(nil)
