// Package custom offers an executable of the image as a tool: its arguments
// come as JSON on standard input, what it prints is the result.
package custom

import (
	"context"
	"encoding/json"
	"errors"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/tool"
	"rollcage.dev/toolserver/internal/truncate"
)

// Spec is what an environment says about such a tool.
type Spec struct {
	Name        string
	Description string
	Command     []string
	Parameters  json.RawMessage
	// Timeout is the default limit when zero.
	Timeout time.Duration
}

// Tool runs the executable.
type Tool struct {
	base *launch.Base
	spec Spec
}

// New makes the tool.
func New(base *launch.Base, spec Spec) *Tool { return &Tool{base: base, spec: spec} }

func (t *Tool) Name() string                { return t.spec.Name }
func (t *Tool) Description() string         { return t.spec.Description }
func (t *Tool) Parameters() json.RawMessage { return t.spec.Parameters }

// Run runs the executable once. Its standard error is for its author; the
// model sees it only when the tool failed.
func (t *Tool) Run(ctx context.Context, call tool.Call) tool.Result {
	reading := t.base.Probe.Begin()
	limit := t.base.Limit(t.spec.Timeout.Milliseconds())
	stdin := []byte(call.Arguments)
	if len(stdin) == 0 {
		stdin = []byte("{}")
	}
	forErrors := t.base.OutputBytes / 4
	stdout, stderr := truncate.New(t.base.OutputBytes-forErrors), truncate.New(forErrors)
	command := proc.Command{
		Args:   t.spec.Command,
		Env:    t.base.Environment.With(nil),
		Dir:    t.base.Workdir,
		Stdin:  stdin,
		Stdout: launch.Sink(stdout, "stdout", call.Emit),
		Stderr: launch.Sink(stderr, "stderr", call.Emit),
		Limit:  limit,
	}
	var outcome proc.Outcome
	var err error = syscall.ENOENT
	if path, ok := t.base.Find(t.spec.Command[0]); ok {
		command.Path = path
		outcome, err = proc.Run(ctx, command)
	}

	var result tool.Result
	reading.End(&result.Facts)
	if err != nil {
		result.Class, result.Output = tool.Failed, t.failure(err)
		return result
	}
	launch.Judge(outcome, &result)
	out, errs := stdout.Text(), stderr.Text()
	result.Output = out.String
	result.Facts.OutputBytes = out.Total
	result.Facts.Truncated = out.Truncated
	if result.Class != tool.OK && errs.Total > 0 {
		result.Output = launch.Append(result.Output, errs.String)
		result.Facts.OutputBytes += errs.Total
		result.Facts.Truncated = out.Truncated || errs.Truncated
	}
	result.Output = launch.Append(result.Output, launch.Ending(outcome, result.Facts, limit))
	return result
}

func (t *Tool) failure(err error) string {
	if errors.Is(err, syscall.ENOENT) {
		return t.spec.Name + ": " + t.spec.Command[0] + " is not an executable file in this sandbox (any more)"
	}
	return t.spec.Name + ": " + launch.StartFailure(err, t.spec.Command[0], t.base.Workdir)
}

var _ tool.Tool = (*Tool)(nil)
