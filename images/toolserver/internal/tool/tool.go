// Package tool says what a tool is: the seam between the server, which checks
// signatures, arguments and repeats, and the tools, which do the work. The
// tools themselves live in packages of their own.
package tool

import (
	"context"
	"encoding/json"
)

// Class says how a call ended. Each of them is the model's own doing.
type Class string

const (
	OK        Class = "ok"
	Failed    Class = "failed"
	TimedOut  Class = "timed_out"
	Malformed Class = "malformed"
)

// Tool is one thing the model can call.
type Tool interface {
	Name() string
	Description() string
	// Parameters is the JSON schema that a call's arguments have passed
	// before Run sees them.
	Parameters() json.RawMessage
	// Run does the work and returns when nothing of it is left running.
	// It ends early when ctx is done: the server is stopping.
	Run(ctx context.Context, call Call) Result
}

// Call is one invocation. The server fills it in.
type Call struct {
	ID        string
	Arguments json.RawMessage
	// Emit, when not nil, receives output as it arrives, uncut, for a caller
	// who is watching; the result is the same with and without it.
	Emit func(stream string, chunk []byte)
}

// Result is what a call came to: a text for the model, facts for the record.
type Result struct {
	Class  Class  `json:"class"`
	Output string `json:"output"`
	Data   any    `json:"data,omitempty"`
	Facts  Facts  `json:"facts"`
}

// Facts are what verdicts are made from, so that nobody has to read texts.
type Facts struct {
	BootID    string `json:"boot_id"`
	ExitCode  *int   `json:"exit_code"`
	Signal    string `json:"signal"`
	TimedOut  bool   `json:"timed_out"`
	Truncated bool   `json:"truncated"`
	// OutputBytes is the length of the output before it was cut.
	OutputBytes     int64    `json:"output_bytes"`
	DurationMS      int64    `json:"duration_ms"`
	PeakMemoryBytes int64    `json:"peak_memory_bytes"`
	OOMKills        int64    `json:"oom_kills"`
	Pressure        Pressure `json:"pressure"`
}

// Pressure is how long the sandbox wanted a CPU and got none during the call,
// and how much it got meanwhile: one that waits because its own loops take all
// the CPUs it was promised is not starved.
type Pressure struct {
	// Source is "psi", "throttling" or "none".
	Source    string `json:"source"`
	StalledMS int64  `json:"stalled_ms"`
	UsedMS    int64  `json:"used_ms"` // 0 when nobody counts
}
