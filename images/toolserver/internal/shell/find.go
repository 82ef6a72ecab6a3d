package shell

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
)

// Shell starts commands in the sandbox's shell: the configured one, else bash,
// else sh.
type Shell struct {
	configured []string
	path       string
	// found is remembered, and looked for again when it is gone: the model
	// may install a shell, or remove one.
	found atomic.Pointer[[]string]
}

// NewShell takes the configured command line, to which the command is
// appended; empty when the image shall be searched along path.
func NewShell(configured []string, path string) *Shell {
	return &Shell{configured: configured, path: path}
}

type errNoShell struct{ wanted string }

func (e errNoShell) Error() string {
	return fmt.Sprintf("there is no shell in this sandbox (%s): commands cannot run, the file tools still work", e.wanted)
}

type errStart struct {
	program string
	cause   error
}

func (e errStart) Error() string { return e.program + ": " + e.cause.Error() }

// locate returns the program and its arguments, without the command, as they
// were last found.
func (s *Shell) locate() ([]string, error) {
	if known := s.found.Load(); known != nil {
		return *known, nil
	}
	line, err := s.Locate()
	if err == nil {
		s.found.Store(&line)
	}
	return line, err
}

// Locate looks for the shell now.
func (s *Shell) Locate() ([]string, error) {
	if len(s.configured) > 0 {
		program, ok := launch.Find(s.configured[0], s.path)
		if !ok {
			return nil, errNoShell{s.configured[0] + " does not exist"}
		}
		return append([]string{program}, s.configured[1:]...), nil
	}
	for _, name := range []string{"bash", "sh"} {
		if program, ok := launch.Find(name, s.path); ok {
			return []string{program, "-c"}, nil
		}
	}
	return nil, errNoShell{"neither bash nor sh was found"}
}

// run runs text in the shell.
func (s *Shell) run(ctx context.Context, command proc.Command, text string) (proc.Outcome, error) {
	for attempt := 0; ; attempt++ {
		line, err := s.locate()
		if err != nil {
			return proc.Outcome{}, err
		}
		command.Path = line[0]
		command.Args = append(line[:len(line):len(line)], text)
		outcome, err := proc.Run(ctx, command)
		if err == nil {
			return outcome, nil
		}
		if !errors.Is(err, syscall.ENOENT) || attempt > 0 {
			return outcome, errStart{line[0], err}
		}
		s.found.Store(nil)
	}
}
