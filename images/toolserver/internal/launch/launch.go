// Package launch holds what every program started for a call shares: where it
// runs, with which environment, for how long, and how its end is told. Starting
// and killing processes belongs to proc.
package launch

import (
	"bytes"
	"path/filepath"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/truncate"
)

// Base is the common ground of the tools that start programs.
type Base struct {
	Workdir        string
	Environment    *Environment
	Probe          *facts.Probe
	DefaultTimeout time.Duration
	MaxTimeout     time.Duration
	OutputBytes    int
}

// Limit is the time limit of a call that asked for this many milliseconds, or
// for none (0).
func (b *Base) Limit(milliseconds int64) time.Duration {
	if milliseconds <= 0 {
		return min(b.DefaultTimeout, b.MaxTimeout)
	}
	// Compared before it is multiplied: a huge number must not wrap around.
	if milliseconds >= b.MaxTimeout.Milliseconds() {
		return b.MaxTimeout
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// Path is absolute; a relative one begins at the work directory.
func (b *Base) Path(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(b.Workdir, path)
}

// Sink keeps the output cut and passes it on whole to whoever watches. The
// watcher gets a copy: the buffer is used again at once.
func Sink(cut *truncate.Cut, stream string, emit func(string, []byte)) func([]byte) {
	if emit == nil {
		return cut.Write
	}
	return func(chunk []byte) {
		cut.Write(chunk)
		emit(stream, bytes.Clone(chunk))
	}
}
