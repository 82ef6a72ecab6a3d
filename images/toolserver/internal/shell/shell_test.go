package shell

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

func newTool(t testing.TB, configured []string, path string) *Tool {
	t.Helper()
	dir := t.TempDir()
	base := &launch.Base{
		Workdir:        dir,
		Environment:    launch.NewEnvironment([]string{"PATH=" + path, "ROLLCAGE_SECRET=x", "KUBERNETES_PORT=y", "KEPT=z"}, dir, map[string]string{"ADDED": "a"}),
		Probe:          facts.Here("boot"),
		DefaultTimeout: 10 * time.Second,
		MaxTimeout:     20 * time.Second,
		OutputBytes:    4 << 10,
	}
	return New(base, NewShell(configured, path))
}

const usualPath = "/usr/local/bin:/usr/bin:/bin"

func call(t testing.TB, one *Tool, args map[string]any) tool.Result {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return one.Run(context.Background(), tool.Call{ID: "1", Arguments: text})
}

func TestWhatTheModelSees(t *testing.T) {
	cases := []struct {
		name   string
		args   map[string]any
		class  tool.Class
		output string
	}{
		{"output alone", map[string]any{"command": "echo hi"}, tool.OK, "hi\n"},
		{"nothing", map[string]any{"command": "true"}, tool.OK, ""},
		{"an exit code", map[string]any{"command": "echo no; exit 3"}, tool.Failed, "no\n[exit code 3]"},
		{"an exit code after half a line", map[string]any{"command": "printf no; exit 3"}, tool.Failed, "no\n[exit code 3]"},
		{"a signal", map[string]any{"command": "kill -SEGV $$"}, tool.Failed, "[killed by signal SIGSEGV]"},
		{"a time limit", map[string]any{"command": "echo so far; sleep 100", "timeout_ms": 200}, tool.TimedOut, "so far\n[timed out after 200 ms]"},
		{"streams apart", map[string]any{"command": "echo o; echo e >&2", "streams": "separate"}, tool.OK, "o\n[stderr]\ne\n"},
		{"a variable", map[string]any{"command": "echo $X $KEPT $ADDED", "env": map[string]string{"X": "1"}}, tool.OK, "1 z a\n"},
		{"another directory", map[string]any{"command": "pwd", "workdir": "/usr"}, tool.OK, "/usr\n"},
		{"nothing of ours in the environment", map[string]any{"command": "env | grep -c -e ROLLCAGE -e KUBERNETES"}, tool.Failed, "0\n[exit code 1]"},
		{"a bad variable", map[string]any{"command": "true", "env": map[string]string{"A=B": "1"}}, tool.Malformed,
			`env: "A=B" cannot be the name of a variable, or its value holds a NUL byte`},
		{"a missing directory", map[string]any{"command": "true", "workdir": "/no/such"}, tool.Failed,
			`cannot run in /no/such: no such file or directory; pass a workdir that exists, for example "/"`},
		{"a NUL byte", map[string]any{"command": "a\x00b"}, tool.Failed, "a command cannot contain NUL bytes"},
		{"a command that is too long", map[string]any{"command": strings.Repeat("x", 200_000)}, tool.Failed,
			"the command or its environment is too long for the system (128 KiB per argument); put it into a file with write_file and run that"},
	}
	one := newTool(t, nil, usualPath)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if got := call(t, one, test.args); got.Class != test.class || got.Output != test.output {
				t.Errorf("got %s: %q, want %s: %q", got.Class, got.Output, test.class, test.output)
			}
		})
	}
}

func TestTheRecordHoldsTheFacts(t *testing.T) {
	one := newTool(t, nil, usualPath)
	got := call(t, one, map[string]any{"command": "head -c 100000 /dev/zero | tr '\\0' x; exit 5"})
	f := got.Facts
	if f.ExitCode == nil || *f.ExitCode != 5 || f.OutputBytes != 100_000 || !f.Truncated || f.BootID != "boot" || f.PeakMemoryBytes == 0 {
		t.Errorf("got %+v", f)
	}
	if len(got.Output) > 4<<10+20 || !strings.Contains(got.Output, "of 100000 bytes left out") {
		t.Errorf("got %d bytes", len(got.Output))
	}
	got = call(t, one, map[string]any{"command": "kill -9 $$"})
	if got.Facts.ExitCode != nil || got.Facts.Signal != "SIGKILL" {
		t.Errorf("got %+v", got.Facts)
	}
	got = call(t, one, map[string]any{"command": "echo o; echo e >&2", "streams": "separate"})
	if got.Data != (streams{"o\n", "e\n"}) {
		t.Errorf("got %+v", got.Data)
	}
}

func TestAWatcherSeesEverything(t *testing.T) {
	one := newTool(t, nil, usualPath)
	var seen strings.Builder
	one.Run(context.Background(), tool.Call{
		Arguments: json.RawMessage(`{"command": "head -c 50000 /dev/zero"}`),
		Emit: func(stream string, chunk []byte) {
			if stream != "output" {
				t.Errorf("stream %s", stream)
			}
			seen.Write(chunk)
		},
	})
	if seen.Len() != 50_000 {
		t.Errorf("saw %d bytes", seen.Len())
	}
}

func TestTheShellIsFoundAndFoundAgain(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "myshell")
	one := newTool(t, []string{link, "-c"}, usualPath)
	missing := "there is no shell in this sandbox (" + link + " does not exist): commands cannot run, the file tools still work"
	if got := call(t, one, map[string]any{"command": "echo x"}); got.Class != tool.Failed || got.Output != missing {
		t.Errorf("got %+v", got)
	}
	os.Symlink("/bin/sh", link)
	if got := call(t, one, map[string]any{"command": "echo x"}); got.Output != "x\n" {
		t.Errorf("got %+v", got)
	}
	os.Remove(link)
	if got := call(t, one, map[string]any{"command": "echo x"}); got.Output != missing {
		t.Errorf("got %+v", got)
	}
}

func TestASandboxWithoutPathStillFindsItsShell(t *testing.T) {
	if got := call(t, newTool(t, nil, "/nowhere"), map[string]any{"command": "echo x"}); got.Output != "x\n" {
		t.Errorf("got %+v", got)
	}
}

func TestAHugeLimitIsClamped(t *testing.T) {
	one := newTool(t, nil, usualPath)
	if limit := one.base.Limit(1 << 62); limit != 20*time.Second {
		t.Errorf("got %v", limit)
	}
}

func BenchmarkNoOp(b *testing.B) {
	one := newTool(b, []string{"/bin/sh", "-c"}, usualPath)
	arguments := json.RawMessage(`{"command": ":"}`)
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		if got := one.Run(context.Background(), tool.Call{Arguments: arguments}); got.Class != tool.OK {
			b.Fatal(got)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)/10].Microseconds()), "p10-µs")
}
