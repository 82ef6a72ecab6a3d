package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"rollcage.dev/toolserver/internal/name"
	"rollcage.dev/toolserver/internal/strictjson"
)

// The defaults keep the longest call below the ten minutes after which
// trainers give up.
const (
	defaultTimeout  = time.Minute
	maxTimeout      = 9 * time.Minute
	setupTimeout    = 10 * time.Minute
	outputBytes     = 64 << 10
	concurrentCalls = 16
	waitingCalls    = 64
)

// Upper bounds: what PID 1 can hold in a small sandbox.
const (
	mostOutputBytes = 512 << 10
	mostConcurrent  = 64
	mostWaiting     = 1024
)

var toolName = name.New("A-Za-z0-9_-", 64)

// document is ROLLCAGE_CONFIG as written; pointers tell missing from zero.
type document struct {
	Workdir     string            `json:"workdir"`
	Shell       []string          `json:"shell"`
	Env         map[string]string `json:"env"`
	Tools       []string          `json:"tools"`
	CustomTools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Command     []string        `json:"command"`
		Parameters  json.RawMessage `json:"parameters"`
		TimeoutMS   *int64          `json:"timeout_ms"`
	} `json:"custom_tools"`
	Setup          []string `json:"setup"`
	SetupTimeoutMS *int64   `json:"setup_timeout_ms"`
	Order          string   `json:"order"`
	Limits         struct {
		DefaultTimeoutMS *int64 `json:"default_timeout_ms"`
		MaxTimeoutMS     *int64 `json:"max_timeout_ms"`
		OutputBytes      *int64 `json:"output_bytes"`
		ConcurrentCalls  *int64 `json:"concurrent_calls"`
		WaitingCalls     *int64 `json:"waiting_calls"`
	} `json:"limits"`
}

func parseEnvironment(text string) (Environment, error) {
	var d document
	if strings.TrimSpace(text) != "" {
		if err := strictjson.Into([]byte(text), &d); err != nil {
			return Environment{}, err
		}
	}
	e := Environment{Workdir: d.Workdir, Shell: d.Shell, Env: d.Env, Tools: d.Tools, Setup: d.Setup}
	b := bounds{}
	e.SetupTimeout = b.millis("setup_timeout_ms", d.SetupTimeoutMS, setupTimeout, 24*time.Hour)
	e.Limits = Limits{
		MaxTimeout:      b.millis("max_timeout_ms", d.Limits.MaxTimeoutMS, maxTimeout, 24*time.Hour),
		OutputBytes:     b.count("output_bytes", d.Limits.OutputBytes, outputBytes, 256, mostOutputBytes),
		ConcurrentCalls: b.count("concurrent_calls", d.Limits.ConcurrentCalls, concurrentCalls, 1, mostConcurrent),
		WaitingCalls:    b.count("waiting_calls", d.Limits.WaitingCalls, waitingCalls, 0, mostWaiting),
	}
	// A small maximum alone is meant to lower the default too.
	fallback := min(defaultTimeout, e.Limits.MaxTimeout)
	e.Limits.DefaultTimeout = b.millis("default_timeout_ms", d.Limits.DefaultTimeoutMS, fallback, e.Limits.MaxTimeout)
	for _, t := range d.CustomTools {
		e.CustomTools = append(e.CustomTools, CustomTool{
			Name: t.Name, Description: t.Description, Command: t.Command, Parameters: t.Parameters,
			Timeout: b.millis("custom_tools: timeout_ms", t.TimeoutMS, 0, e.Limits.MaxTimeout),
		})
	}
	if b.err != nil {
		return Environment{}, b.err
	}
	switch d.Order {
	case "", "parallel":
	case "serial":
		e.Serial = true
	default:
		return Environment{}, fmt.Errorf(`order is "parallel" or "serial", not %q`, d.Order)
	}
	return e, e.check()
}

func (e Environment) check() error {
	for name, value := range e.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("env: %q cannot be set", name)
		}
	}
	for _, tool := range e.CustomTools {
		if !toolName.MatchString(tool.Name) {
			return fmt.Errorf("custom_tools: %q is not a tool name", tool.Name)
		}
		if len(tool.Command) == 0 {
			return fmt.Errorf("custom_tools: %s has no command", tool.Name)
		}
	}
	if e.Shell != nil && len(e.Shell) == 0 {
		return errors.New("shell is empty; leave it out to have one found")
	}
	return nil
}

// bounds reads numbers and keeps the first error.
type bounds struct{ err error }

func (b *bounds) millis(name string, value *int64, fallback, most time.Duration) time.Duration {
	if value == nil {
		return fallback
	}
	return time.Duration(b.within(name, *value, 1, most.Milliseconds())) * time.Millisecond
}

func (b *bounds) count(name string, value *int64, fallback, least, most int64) int {
	if value == nil {
		return int(fallback)
	}
	return int(b.within(name, *value, least, most))
}

func (b *bounds) within(name string, value, least, most int64) int64 {
	if (value < least || value > most) && b.err == nil {
		b.err = fmt.Errorf("%s must lie between %d and %d, not %d", name, least, most, value)
	}
	return value
}
