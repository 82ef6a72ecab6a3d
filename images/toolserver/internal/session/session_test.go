package session

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/shell"
	"rollcage.dev/toolserver/internal/tool"
)

// The shells of this machine, each with everything below.
var shells = map[string][]string{
	"bash":    {"/bin/bash", "-c"},
	"sh":      {"/bin/sh", "-c"},
	"busybox": {"/bin/busybox", "sh", "-c"},
}

func eachShell(t *testing.T, test func(t *testing.T, m *Manager)) {
	for name, line := range shells {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(line[0]); err != nil {
				t.Skip(err)
			}
			test(t, newManager(t, line))
		})
	}
}

func newManager(t *testing.T, line []string) *Manager {
	t.Helper()
	dir := t.TempDir()
	base := &launch.Base{
		Workdir:        dir,
		Environment:    launch.NewEnvironment(os.Environ(), dir, nil),
		Probe:          facts.Here("boot"),
		DefaultTimeout: 20 * time.Second,
		MaxTimeout:     time.Minute,
		OutputBytes:    8 << 10,
	}
	m := NewManager(base, shell.NewShell(line, base.Environment.Path()))
	t.Cleanup(m.Close)
	return m
}

func call(t *testing.T, m *Manager, name string, args map[string]any) tool.Result {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range m.Tools() {
		if one.Name() == name {
			return one.Run(context.Background(), tool.Call{ID: "1", Arguments: text})
		}
	}
	t.Fatalf("no tool %s", name)
	return tool.Result{}
}

func open(t *testing.T, m *Manager, name string) {
	t.Helper()
	if result := call(t, m, "session_create", map[string]any{"session": name}); result.Class != tool.OK {
		t.Fatalf("create: %+v", result)
	}
}

// do runs a command in session s; limit is in milliseconds, 0 for none.
func do(t *testing.T, m *Manager, command string, limit int) tool.Result {
	t.Helper()
	args := map[string]any{"session": "s", "command": command}
	if limit > 0 {
		args["timeout_ms"] = limit
	}
	return call(t, m, "session_run", args)
}

func expect(t *testing.T, m *Manager, command, output string) {
	t.Helper()
	if result := do(t, m, command, 0); result.Output != output {
		t.Errorf("%s: got %q, want %q", command, result.Output, output)
	}
}

func TestASessionRemembers(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		expect(t, m, "cd /usr; X=it\\'s; f() { echo f $1; }", "")
		expect(t, m, "pwd; echo \"$X\"; f 1", "/usr\nit's\nf 1\n")
		expect(t, m, "false", "[exit code 1]")
		expect(t, m, "echo $?", "1\n")
		expect(t, m, "echo $?", "0\n")
		expect(t, m, "cat; echo 'a\nb'", "a\nb\n")
	})
}

func TestACommandCannotHangOrFoolASession(t *testing.T) {
	// The command, and what its output must contain; the session lives on.
	cases := []struct{ name, command, contains string }{
		{"an unbalanced quote", `echo "abc`, "[exit code "},
		{"a syntax error", "if then fi (", "[exit code "},
		{"an open here-document", "cat <<END\nx\n", "x"},
		{"a stray bracket", ")", "[exit code "},
		{"break outside a loop", "break; echo on", "on"},
		{"a comment at the end", "echo x # y", "x"},
		{"a backslash at the end", `echo x \`, "x"},
		{"reading standard input", "read x; cat; echo end", "end"},
		{"closing the report's descriptor", "exec 3>&- 3<&-; echo end", "end"},
		{"a look-alike of the report", `printf 'deadbeef 0\n' >&3; printf 'deadbeef 0\n'; echo end`, "end"},
		{"an empty command", "", ""},
		{"carriage returns", "echo a\r\necho b\r\n", "a"},
	}
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		for _, test := range cases {
			t.Run(test.name, func(t *testing.T) {
				result := do(t, m, test.command, 0)
				if result.Class == tool.TimedOut || !strings.Contains(result.Output, test.contains) {
					t.Errorf("got %s: %q", result.Class, result.Output)
				}
				expect(t, m, "echo alive", "alive\n")
			})
		}
	})
}

func TestTheReportsDescriptorIsClosedForCommands(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		pipes := do(t, m, "/bin/ls -l /proc/self/fd 2>/dev/null | grep -c pipe:", 0)
		if strings.TrimSpace(pipes.Output) != "1" {
			t.Errorf("not only output and errors: %q", pipes.Output)
		}
	})
}

func TestTheEndOfTheShellIsReported(t *testing.T) {
	cases := []struct{ name, command, contains string }{
		{"exit", "echo bye; exit 3", "ended with exit code 3; session_create"},
		{"exec", "exec sh -c 'exit 4'", "ended with exit code 4"},
		{"killed", "kill -KILL $$", "killed by signal SIGKILL"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, m *Manager) {
				open(t, m, "s")
				for _, command := range []string{test.command, "echo again"} {
					result := do(t, m, command, 0)
					if result.Class != tool.Failed || !strings.Contains(result.Output, test.contains) {
						t.Errorf("got %s: %q", result.Class, result.Output)
					}
				}
				open(t, m, "s")
				expect(t, m, "echo new", "new\n")
			})
		})
	}
}

func TestTheLimitInterruptsAndTheSessionGoesOn(t *testing.T) {
	cases := []struct{ name, command string }{
		{"a program", "sleep 1000"},
		{"a list of programs", "sleep 1000; sleep 1000; echo never"},
		{"a loop in the shell itself", "while :; do :; done"},
		{"a loop of programs", "while :; do sleep 0.1; done"},
		{"a program that ignores interrupts", "sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'"},
		{"a pipeline", "yes | cat >/dev/null"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			eachShell(t, func(t *testing.T, m *Manager) {
				open(t, m, "s")
				do(t, m, "X=kept; sleep 1000 >/dev/null & B=$!", 0)
				result := do(t, m, "echo before; "+test.command, 300)
				if result.Class != tool.TimedOut || !result.Facts.TimedOut {
					t.Fatalf("got %s: %q", result.Class, result.Output)
				}
				if !strings.HasPrefix(result.Output, "before\n") || !strings.HasSuffix(result.Output, "[timed out after 300 ms; the session goes on]") {
					t.Errorf("got %q", result.Output)
				}
				if after := do(t, m, "kill -0 $B && echo $X", 0); after.Output != "kept\n" {
					t.Errorf("afterwards: %q", after.Output)
				}
			})
		})
	}
}

func TestASessionThatCannotBeInterruptedIsEnded(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		result := do(t, m, "trap '' INT TERM; while :; do :; done", 200)
		if result.Class != tool.TimedOut || !strings.Contains(result.Output, "the session was ended; session_create") {
			t.Fatalf("got %s: %q", result.Class, result.Output)
		}
		open(t, m, "s")
	})
}

func TestInterruptEndsTheRunningCommandOnly(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		flag := filepath.Join(t.TempDir(), "flag")
		done := make(chan tool.Result)
		// The flag must come from the very process that then waits: an interrupt
		// that meets a program which is ending well is lost on bash.
		go func() { done <- do(t, m, fmt.Sprintf("X=1; sh -c ': >%s; exec sleep 1000'; sleep 1000", flag), 0) }()
		waitForFile(t, flag)
		if result := call(t, m, "session_interrupt", map[string]any{"session": "s"}); result.Class != tool.OK {
			t.Errorf("got %+v", result)
		}
		if result := <-done; result.Class != tool.Failed || result.Facts.TimedOut {
			t.Errorf("got %+v", result)
		}
		expect(t, m, "echo $X", "1\n")
		if result := call(t, m, "session_interrupt", map[string]any{"session": "s"}); !strings.Contains(result.Output, "nothing runs") {
			t.Errorf("got %+v", result)
		}
	})
}

func TestAnInterruptSaysWhetherTheCommandIsOver(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		flag := filepath.Join(t.TempDir(), "flag")
		done := make(chan tool.Result)
		go func() {
			done <- do(t, m, fmt.Sprintf("sh -c 'trap \"\" INT; : >%s; sleep 1000'", flag), 0)
		}()
		waitForFile(t, flag)
		if result := call(t, m, "session_interrupt", map[string]any{"session": "s"}); !strings.Contains(result.Output, "still running") {
			t.Errorf("got %+v", result)
		}
		call(t, m, "session_close", map[string]any{"session": "s"})
		<-done
	})
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestBackgroundProcessesLiveUntilTheSessionIsClosed(t *testing.T) {
	eachShell(t, func(t *testing.T, m *Manager) {
		open(t, m, "s")
		pidFile := filepath.Join(t.TempDir(), "pid")
		do(t, m, fmt.Sprintf("setsid sh -c 'echo $$ >%s; exec sleep 1000' >/dev/null 2>&1 &", pidFile), 0)
		var pid int
		for pid == 0 {
			text, _ := os.ReadFile(pidFile)
			fmt.Sscan(string(text), &pid)
		}
		do(t, m, "echo other", 0)
		if syscall.Kill(pid, 0) != nil {
			t.Error("it did not outlive its command")
		}
		if result := call(t, m, "session_close", map[string]any{"session": "s"}); result.Class != tool.OK {
			t.Errorf("got %+v", result)
		}
		if syscall.Kill(pid, 0) == nil {
			t.Error("it outlived its session")
		}
		if result := do(t, m, "echo x", 0); result.Class != tool.Failed || !strings.Contains(result.Output, "no session") {
			t.Errorf("got %+v", result)
		}
	})
}

func TestBackgroundOutputNeverBlocksAndIsShownNext(t *testing.T) {
	m := newManager(t, shells["bash"])
	open(t, m, "s")
	flag := filepath.Join(t.TempDir(), "flag")
	do(t, m, fmt.Sprintf("{ head -c 300000 /dev/zero | tr '\\0' x; echo END; touch %s; } &", flag), 0)
	waitForFile(t, flag)
	result := do(t, m, "echo next", 0)
	if !result.Facts.Truncated || !strings.Contains(result.Output, "END\n") || !strings.Contains(result.Output, "next\n") {
		t.Errorf("got %d bytes: %q", len(result.Output), result.Output[max(0, len(result.Output)-100):])
	}
}

func TestASessionIsBusyWithOneCommandAtATime(t *testing.T) {
	m := newManager(t, shells["bash"])
	open(t, m, "s")
	started := make(chan struct{})
	done := make(chan tool.Result)
	go func() {
		close(started)
		done <- do(t, m, "sleep 0.5; echo first", 0)
	}()
	<-started
	time.Sleep(100 * time.Millisecond)
	if result := do(t, m, "echo second", 50); result.Class != tool.TimedOut || !strings.Contains(result.Output, "did not run") {
		t.Errorf("got %+v", result)
	}
	if result := do(t, m, "echo third", 0); result.Output != "third\n" {
		t.Errorf("got %+v", result)
	}
	if result := <-done; result.Output != "first\n" {
		t.Errorf("got %+v", result)
	}
}

func TestTheNumberOfSessionsIsBounded(t *testing.T) {
	m := newManager(t, shells["sh"])
	for range MaxSessions {
		if result := call(t, m, "session_create", nil); result.Class != tool.OK {
			t.Fatalf("got %+v", result)
		}
	}
	if result := call(t, m, "session_create", nil); result.Class != tool.Failed || !strings.Contains(result.Output, "session_close") {
		t.Errorf("got %+v", result)
	}
	call(t, m, "session_close", map[string]any{"session": "s3"})
	if result := call(t, m, "session_create", map[string]any{"session": "s1"}); !strings.Contains(result.Output, "exists") {
		t.Errorf("got %+v", result)
	}
	if result := call(t, m, "session_create", nil); result.Class != tool.OK {
		t.Errorf("got %+v", result)
	}
}

func TestALongCommandIsTakenWhole(t *testing.T) {
	m := newManager(t, shells["sh"])
	open(t, m, "s")
	text := strings.Repeat("it's long ", 20000)
	result := do(t, m, "X="+quote(text)+"; echo ${#X}", 0)
	if strings.TrimSpace(result.Output) != fmt.Sprint(len(text)) {
		t.Errorf("got %q", result.Output)
	}
}

func TestMain(m *testing.M) {
	// As a test runner under nohup would have it.
	signal.Ignore(syscall.SIGHUP)
	os.Exit(m.Run())
}

func TestAShutdownEndsARunningCommandAtOnce(t *testing.T) {
	m := newManager(t, shells["sh"])
	open(t, m, "s")
	ctx, cancel := context.WithCancel(context.Background())
	s, _ := m.find("s")
	began := time.Now()
	came := s.run(ctx, "echo started; trap '' INT TERM; while :; do :; done", time.Minute, func(string, []byte) { cancel() })
	if !came.stopped || !came.over || time.Since(began) > 5*time.Second {
		t.Errorf("got %+v after %v", came, time.Since(began))
	}
}

func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	base := &launch.Base{
		Workdir: dir, Environment: launch.NewEnvironment(os.Environ(), dir, nil), Probe: facts.Here("boot"),
		DefaultTimeout: 20 * time.Second, MaxTimeout: time.Minute, OutputBytes: 64 << 10,
	}
	m := NewManager(base, shell.NewShell(shells["sh"], base.Environment.Path()))
	defer m.Close()
	s, err := m.create(context.Background(), "s", dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if came := s.run(context.Background(), ":", time.Minute, nil); came.status != 0 || came.over {
			b.Fatal(came)
		}
	}
}
