// Package files holds the tools that read, write, list and search files without
// a shell. They run as the model's own user, so they guard not what it may see
// but that nothing blocks, nothing is unbounded, and nothing of PID 1's own
// view leaks.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"

	"rollcage.dev/toolserver/internal/disk"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

// Room for the lines after the output that say what it is not.
const noteRoom = 512

// Tools are the file tools.
func Tools(base *launch.Base) []tool.Tool {
	return []tool.Tool{
		newTool(base, "read_file", readDescription, readParameters, read),
		newTool(base, "write_file", writeDescription, writeParameters, write),
		newTool(base, "list", listDescription, listParameters, list),
		newTool(base, "search", searchDescription, searchParameters, search),
	}
}

// operation is one of the tools; they differ in their arguments and in what
// they do.
type operation[A any] struct {
	base        *launch.Base
	name        string
	description string
	parameters  string
	do          func(context.Context, *launch.Base, A) tool.Result
}

func newTool[A any](base *launch.Base, name, description, parameters string,
	do func(context.Context, *launch.Base, A) tool.Result,
) tool.Tool {
	return &operation[A]{base, name, description, parameters, do}
}

func (o *operation[A]) Name() string                { return o.name }
func (o *operation[A]) Description() string         { return o.description }
func (o *operation[A]) Parameters() json.RawMessage { return json.RawMessage(o.parameters) }

// Run does it, within the default time limit.
func (o *operation[A]) Run(ctx context.Context, call tool.Call) tool.Result {
	reading := o.base.Probe.Begin()
	ctx, cancel := context.WithTimeout(ctx, o.base.Limit(0))
	defer cancel()
	var args A
	var result tool.Result
	if err := json.Unmarshal(call.Arguments, &args); err != nil {
		result = malformed("bad arguments: " + err.Error())
	} else {
		result = o.do(ctx, o.base, args)
	}
	if result.Facts.OutputBytes == 0 {
		result.Facts.OutputBytes = int64(len(result.Output))
	}
	result.Facts.TimedOut = result.Class == tool.TimedOut
	reading.End(&result.Facts)
	return result
}

func malformed(text string) tool.Result { return tool.Result{Class: tool.Malformed, Output: text} }

func failed(text string) tool.Result { return tool.Result{Class: tool.Failed, Output: text} }

// failure words what the file system said.
func failure(doing, path string, err error) tool.Result {
	var refusal *disk.Refusal
	switch {
	case errors.As(err, &refusal):
		return failed(refusal.Error())
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return failed("cannot " + doing + " " + path + ": the sandbox has no space or no inodes left; remove something first")
	case errors.Is(err, fs.ErrInvalid):
		return malformed("a path cannot be empty or contain NUL bytes")
	}
	return failed("cannot " + doing + " " + path + ": " + launch.Reason(err))
}
