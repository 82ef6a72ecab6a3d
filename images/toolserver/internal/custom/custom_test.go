package custom

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

func run(t *testing.T, script string, timeout time.Duration) tool.Result {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	base := &launch.Base{
		Workdir: dir, Environment: launch.NewEnvironment(nil, dir, nil), Probe: facts.Here("boot"),
		DefaultTimeout: 10 * time.Second, MaxTimeout: 20 * time.Second, OutputBytes: 4 << 10,
	}
	one := New(base, Spec{Name: "mine", Command: []string{"./mine", "arg"}, Timeout: timeout})
	return one.Run(context.Background(), tool.Call{Arguments: json.RawMessage(`{"a": 1}`)})
}

func TestACustomTool(t *testing.T) {
	cases := []struct {
		name, script string
		timeout      time.Duration
		class        tool.Class
		output       string
	}{
		{"gets its arguments as JSON", "cat; echo $1", 0, tool.OK, "{\"a\": 1}arg\n"},
		{"keeps its errors to itself when it succeeds", "echo out; echo noise >&2", 0, tool.OK, "out\n"},
		{"shows its errors when it fails", "echo out; echo why >&2; exit 2", 0, tool.Failed, "out\nwhy\n[exit code 2]"},
		{"has a time limit of its own", "sleep 100", 100 * time.Millisecond, tool.TimedOut, "[timed out after 100 ms]"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if got := run(t, test.script, test.timeout); got.Class != test.class || got.Output != test.output {
				t.Errorf("got %s: %q", got.Class, got.Output)
			}
		})
	}
}

func TestAMissingExecutableIsNamed(t *testing.T) {
	base := &launch.Base{
		Workdir: "/", Environment: launch.NewEnvironment(nil, "/", nil), Probe: facts.Here("boot"),
		DefaultTimeout: time.Second, MaxTimeout: time.Second, OutputBytes: 4 << 10,
	}
	one := New(base, Spec{Name: "mine", Command: []string{"/opt/none"}})
	got := one.Run(context.Background(), tool.Call{})
	if got.Class != tool.Failed || !strings.Contains(got.Output, "mine: /opt/none is not an executable file") {
		t.Errorf("got %+v", got)
	}
}
