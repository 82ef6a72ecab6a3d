// Package toolbox puts the tools of one sandbox together: which are offered,
// what they share, and what is left running when the sandbox stops. What each
// tool does belongs to its own package; checking arguments and remembering
// calls belongs to the server.
package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"rollcage.dev/toolserver/internal/custom"
	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/files"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/session"
	"rollcage.dev/toolserver/internal/shell"
	"rollcage.dev/toolserver/internal/tool"
	"rollcage.dev/toolserver/internal/truncate"
)

// The defaults of the contract.
const (
	defaultTimeout     = time.Minute
	defaultMaxTimeout  = 9 * time.Minute
	defaultOutputBytes = 64 << 10
)

// Options say what an environment offers. Zero values mean the defaults.
type Options struct {
	Workdir string
	// Shell is the command that shell text is appended to; when empty, bash
	// or else sh is found in the image.
	Shell []string
	Env   map[string]string
	// Builtins names the built-in tools offered; nil means all of them.
	Builtins       []string
	Custom         []Custom
	DefaultTimeout time.Duration
	MaxTimeout     time.Duration
	OutputBytes    int
	BootID         string
}

// Custom is an executable of the image that the environment offers as a tool.
type Custom struct {
	Name        string
	Description string
	Command     []string
	Parameters  json.RawMessage
	Timeout     time.Duration
}

// Box holds the tools of one sandbox and what they share.
type Box struct {
	tools    []tool.Tool
	shell    *shell.Tool
	sessions *session.Manager
}

// New makes the tools. It fails on options that cannot be meant.
func New(options Options) (*Box, error) {
	base, err := newBase(options)
	if err != nil {
		return nil, err
	}
	proc.Begin()
	theShell := shell.NewShell(options.Shell, base.Environment.Path())
	box := &Box{shell: shell.New(base, theShell), sessions: session.NewManager(base, theShell)}

	builtins := []tool.Tool{box.shell}
	builtins = append(builtins, box.sessions.Tools()...)
	builtins = append(builtins, files.Tools(base)...)
	if box.tools, err = choose(builtins, options.Builtins); err != nil {
		return nil, err
	}
	for _, declared := range options.Custom {
		made, err := newCustom(base, declared, builtins, box.tools)
		if err != nil {
			return nil, err
		}
		box.tools = append(box.tools, made)
	}
	return box, nil
}

func newBase(options Options) (*launch.Base, error) {
	workdir := options.Workdir
	if workdir == "" {
		workdir = "/"
		if here, err := os.Getwd(); err == nil {
			workdir = here
		}
	}
	if !strings.HasPrefix(workdir, "/") {
		return nil, fmt.Errorf("workdir %q is not an absolute path", workdir)
	}
	if name, bad := launch.BadName(options.Env); bad {
		return nil, fmt.Errorf("env: %q cannot be the name of a variable", name)
	}
	if options.OutputBytes != 0 && options.OutputBytes < 4*truncate.Least {
		return nil, fmt.Errorf("output_bytes must be at least %d", 4*truncate.Least)
	}
	// An image need not have it; where it cannot be made, each call says so.
	os.MkdirAll(workdir, 0o755)
	return &launch.Base{
		Workdir:        workdir,
		Environment:    launch.NewEnvironment(os.Environ(), workdir, options.Env),
		Probe:          facts.Here(options.BootID),
		DefaultTimeout: orDefault(options.DefaultTimeout, defaultTimeout),
		MaxTimeout:     orDefault(options.MaxTimeout, defaultMaxTimeout),
		OutputBytes:    orDefault(options.OutputBytes, defaultOutputBytes),
	}, nil
}

func orDefault[T time.Duration | int](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

func named(tools []tool.Tool, name string) bool {
	return slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Name() == name })
}

// choose keeps the named ones, in the box's own order.
func choose(all []tool.Tool, names []string) ([]tool.Tool, error) {
	if names == nil {
		return slices.Clone(all), nil
	}
	for _, name := range names {
		if !named(all, name) {
			return nil, fmt.Errorf("tools: there is no built-in tool %q", name)
		}
	}
	var chosen []tool.Tool
	for _, one := range all {
		if slices.Contains(names, one.Name()) {
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
}

// newCustom refuses a name that the model could mistake for another tool, also
// for a built-in one that is not offered here.
func newCustom(base *launch.Base, declared Custom, builtins, others []tool.Tool) (tool.Tool, error) {
	switch {
	case declared.Name == "":
		return nil, errors.New("custom_tools: a tool has no name")
	case named(builtins, declared.Name) || named(others, declared.Name):
		return nil, fmt.Errorf("custom_tools: the name %q is taken", declared.Name)
	case len(declared.Command) == 0 || declared.Command[0] == "":
		return nil, fmt.Errorf("custom_tools: %s has no command", declared.Name)
	case declared.Timeout < 0:
		return nil, fmt.Errorf("custom_tools: %s has a negative time limit", declared.Name)
	}
	parameters := declared.Parameters
	if len(parameters) == 0 {
		parameters = json.RawMessage(`{"type": "object"}`)
	}
	return custom.New(base, custom.Spec{
		Name:        declared.Name,
		Description: declared.Description,
		Command:     declared.Command,
		Parameters:  parameters,
		Timeout:     declared.Timeout,
	}), nil
}

// Tools are the tools offered, in a stable order.
func (b *Box) Tools() []tool.Tool { return slices.Clone(b.tools) }

// Setup runs the commands one after the other; the first that fails ends it,
// and the error holds what it printed. The limit is for all of them together.
func (b *Box) Setup(ctx context.Context, commands []string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for i, command := range commands {
		result := b.shell.Prepare(ctx, command, max(time.Until(deadline), time.Millisecond))
		if result.Class != tool.OK {
			return fmt.Errorf("set-up command %d of %d failed: %s\n%s", i+1, len(commands), command, result.Output)
		}
	}
	return nil
}

// Close ends every session and everything they left running.
func (b *Box) Close() { b.sessions.Close() }

// Freeze ends every session and every process there is, and says how many
// could not be ended. No tool may run during it or after it.
func (b *Box) Freeze() (left int) {
	b.sessions.Close()
	return proc.EndAll()
}
