package launch

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/tool"
)

// Judge fills in class and facts from how a program ended.
func Judge(outcome proc.Outcome, result *tool.Result) {
	result.Facts.PeakMemoryBytes = outcome.PeakMemory
	// To whoever is stopped from outside its time is over as well.
	result.Facts.TimedOut = outcome.TimedOut || outcome.Stopped
	if outcome.Known && outcome.Status.Exited() {
		code := outcome.Status.ExitStatus()
		result.Facts.ExitCode = &code
	}
	if outcome.Known && outcome.Status.Signaled() {
		result.Facts.Signal = SignalName(outcome.Status.Signal())
	}
	switch {
	case result.Facts.TimedOut:
		result.Class = tool.TimedOut
	case outcome.Known && outcome.Status == 0:
		result.Class = tool.OK
	default:
		result.Class = tool.Failed
	}
}

// Ending is the line that tells the model how its program ended; empty when
// there is nothing to tell.
func Ending(outcome proc.Outcome, facts tool.Facts, limit time.Duration) string {
	var parts []string
	switch {
	case outcome.TimedOut:
		parts = append(parts, fmt.Sprintf("timed out after %d ms", limit.Milliseconds()))
	case outcome.Stopped:
		parts = append(parts, "stopped: the sandbox takes no more calls")
	case facts.Signal != "":
		parts = append(parts, "killed by signal "+facts.Signal)
	case facts.ExitCode != nil && *facts.ExitCode != 0:
		parts = append(parts, fmt.Sprintf("exit code %d", *facts.ExitCode))
	}
	if facts.OOMKills > 0 && len(parts) == 0 {
		parts = append(parts, "a process was killed")
	}
	if facts.OOMKills > 0 {
		parts = append(parts, "out of memory")
	}
	text := ""
	if len(parts) > 0 {
		text = "[" + strings.Join(parts, ": ") + "]"
	}
	if outcome.Left > 0 {
		text += fmt.Sprintf("[%d processes could not be killed]", outcome.Left)
	}
	return text
}

// Append puts a line after an output that may not end with one.
func Append(output, line string) string {
	switch {
	case line == "":
		return output
	case output == "" || strings.HasSuffix(output, "\n"):
		return output + line
	}
	return output + "\n" + line
}

// StartFailure says why a program did not start and what to do about it.
func StartFailure(err error, program, directory string) string {
	if info, statErr := os.Stat(directory); statErr != nil {
		return fmt.Sprintf("cannot run in %s: %s; pass a workdir that exists, for example \"/\"", directory, Reason(statErr))
	} else if !info.IsDir() {
		return fmt.Sprintf("cannot run in %s: it is not a directory", directory)
	}
	switch {
	case errors.Is(err, syscall.E2BIG):
		return "the command or its environment is too long for the system (128 KiB per argument); put it into a file with write_file and run that"
	case errors.Is(err, syscall.EINVAL):
		return "a command cannot contain NUL bytes"
	case errors.Is(err, syscall.EAGAIN):
		return "cannot start a process: the sandbox has reached its limit of processes; end some, for example with session_close"
	case errors.Is(err, syscall.ENOMEM):
		return "cannot start a process: the sandbox is out of memory; end some processes, for example with session_close"
	case errors.Is(err, syscall.ENOENT):
		return program + " does not exist in this sandbox, or its interpreter does not"
	}
	return fmt.Sprintf("cannot start %s: %s", program, Reason(err))
}

// Reason is the plain cause of a system error, without Go's call and path.
func Reason(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGQUIT: "SIGQUIT", syscall.SIGILL: "SIGILL",
	syscall.SIGTRAP: "SIGTRAP", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS", syscall.SIGFPE: "SIGFPE",
	syscall.SIGKILL: "SIGKILL", syscall.SIGUSR1: "SIGUSR1", syscall.SIGSEGV: "SIGSEGV", syscall.SIGUSR2: "SIGUSR2",
	syscall.SIGPIPE: "SIGPIPE", syscall.SIGALRM: "SIGALRM", syscall.SIGTERM: "SIGTERM", syscall.SIGSTKFLT: "SIGSTKFLT",
	syscall.SIGXCPU: "SIGXCPU", syscall.SIGXFSZ: "SIGXFSZ", syscall.SIGVTALRM: "SIGVTALRM", syscall.SIGPROF: "SIGPROF",
	syscall.SIGIO: "SIGIO", syscall.SIGPWR: "SIGPWR", syscall.SIGSYS: "SIGSYS",
}

// SignalName is the name of a signal as people write it.
func SignalName(signal syscall.Signal) string {
	if name, ok := signalNames[signal]; ok {
		return name
	}
	return fmt.Sprintf("SIG%d", int(signal))
}
