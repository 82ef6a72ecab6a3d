// Command toolserver is PID 1 of every sandbox: it runs tools for one rollout
// and remembers what it ran. docs/toolserver.md is its contract.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
)

// version is set by the linker.
var version = "dev"

// exitTampered tells whoever looks at the dead container that the model ended
// it. Nothing else ends with this code.
const exitTampered = 86

// exitStopped is how a program ends that was asked to stop, as if the signal
// itself had ended it. With 0 the kubelet would call an evicted pod succeeded
// and forget why it was evicted.
const exitStopped = 143

// errStopped: asked to stop from outside, and did.
var errStopped = errors.New("stopped")

const usage = `usage:
  toolserver serve           serve; the configuration comes from the environment
  toolserver install PATH    copy this binary to PATH
  toolserver version         print the version
`

func main() {
	// One line of JSON per event: what a model makes us log stays one line.
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	err := run(os.Args[1:])
	switch {
	case errors.Is(err, errStopped):
		os.Exit(exitStopped)
	case err != nil:
		slog.Error("toolserver_failed", "error", err.Error())
		os.Exit(exitCode(err))
	}
}

func exitCode(err error) int {
	if tampered := (*tamperedError)(nil); errors.As(err, &tampered) {
		return exitTampered
	}
	return 1
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve()
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) == 1 && args[0] == "version":
		fmt.Println(version)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	os.Exit(2)
	return nil
}
