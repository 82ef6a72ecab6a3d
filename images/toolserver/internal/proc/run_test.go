package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func sh(script string) Command {
	return Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script},
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Limit: 20 * time.Second,
	}
}

// run runs a command and returns what it printed.
func run(t *testing.T, command Command) (string, Outcome) {
	t.Helper()
	var out bytes.Buffer
	if command.Stdout == nil {
		command.Stdout = func(chunk []byte) { out.Write(chunk) }
	}
	outcome, err := Run(context.Background(), command)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), outcome
}

func alive(pid int) bool { return running(pid) }

// pidsIn are the numbers a script printed.
func pidsIn(t *testing.T, text string) []int {
	t.Helper()
	var pids []int
	for field := range strings.FieldsSeq(text) {
		var pid int
		if _, err := fmt.Sscan(field, &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Fatalf("no process numbers in %q", text)
	}
	return pids
}

func TestOutputAndStatusOfACommand(t *testing.T) {
	cases := []struct {
		name, script, output string
		status               syscall.WaitStatus
	}{
		{"success", "echo hello", "hello\n", 0},
		{"exit code", "echo x; exit 7", "x\n", 7 << 8},
		{"both streams in order of arrival", "echo a; echo b >&2; echo c", "a\nb\nc\n", 0},
		{"killed by its own signal", "kill -TERM $$", "", syscall.WaitStatus(syscall.SIGTERM)},
		{"standard input is at its end", "cat; echo end", "end\n", 0},
		{"output closed early", "exec >&- 2>&-; sleep 0.1; exit 3", "", 3 << 8},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			output, outcome := run(t, sh(test.script))
			if output != test.output || outcome.Status != test.status || !outcome.Known {
				t.Errorf("got %q, %+v", output, outcome)
			}
		})
	}
}

func TestChildrenStartWithDefaultSignals(t *testing.T) {
	output, _ := run(t, sh("grep -E '^Sig(Blk|Ign)' /proc/self/status"))
	for line := range strings.Lines(output) {
		if !strings.HasSuffix(strings.TrimSpace(line), "0000000000000000") {
			t.Errorf("inherited %q", line)
		}
	}
}

func TestChildrenHaveAHigherOOMScore(t *testing.T) {
	// The score is written right after the start; the shell gives it time.
	output, _ := run(t, sh("sleep 0.1; cat /proc/self/oom_score_adj"))
	if strings.TrimSpace(output) != childOOMScore {
		t.Errorf("score is %q", output)
	}
}

func TestStreamsCanBeKeptApart(t *testing.T) {
	var errs bytes.Buffer
	command := sh("echo out; echo err >&2")
	command.Stderr = func(chunk []byte) { errs.Write(chunk) }
	output, _ := run(t, command)
	if output != "out\n" || errs.String() != "err\n" {
		t.Errorf("got %q and %q", output, errs.String())
	}
}

func TestStandardInputIsFedWhileOutputIsRead(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	command := sh("cat")
	command.Stdin = content
	output, outcome := run(t, command)
	if output != string(content) || outcome.Status != 0 {
		t.Errorf("got %d bytes, %+v", len(output), outcome)
	}
}

func TestUnreadStandardInputHoldsNothingUp(t *testing.T) {
	command := sh("echo done")
	command.Stdin = make([]byte, 4<<20)
	if output, outcome := run(t, command); output != "done\n" || outcome.Status != 0 {
		t.Errorf("got %q, %+v", output, outcome)
	}
}

func TestAMissingProgramIsAnError(t *testing.T) {
	command := sh("")
	command.Path = "/does/not/exist"
	if _, err := Run(context.Background(), command); err != syscall.ENOENT {
		t.Errorf("got %v", err)
	}
}

func TestTheLimitEndsTheWholeTree(t *testing.T) {
	command := sh("trap '' TERM INT HUP; echo $$; sleep 1000 & echo $!; while :; do sleep 1000; done")
	command.Limit = 300 * time.Millisecond
	began := time.Now()
	output, outcome := run(t, command)
	if !outcome.TimedOut || outcome.Left != 0 {
		t.Errorf("got %+v", outcome)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	for _, pid := range pidsIn(t, output) {
		if alive(pid) {
			t.Errorf("%d is alive", pid)
		}
	}
}

func TestTheCallerCanStopIt(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	command := sh("echo started; sleep 1000")
	command.Stdout = func([]byte) { cancel() }
	outcome, err := Run(ctx, command)
	if err != nil || !outcome.Stopped {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

func TestLongOutputArrivesWhole(t *testing.T) {
	const size = 200 << 20
	total := 0
	command := sh(fmt.Sprintf("head -c %d /dev/zero", size))
	command.Limit = 2 * time.Minute
	command.Stdout = func(chunk []byte) { total += len(chunk) }
	if _, outcome := run(t, command); total != size || outcome.Status != 0 {
		t.Errorf("got %d bytes, %+v", total, outcome)
	}
}

func TestManyAtOnceEachGetTheirOwnStatus(t *testing.T) {
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			output, outcome := run(t, sh(fmt.Sprintf("echo %d; exit %d", i, i)))
			if output != fmt.Sprintf("%d\n", i) || outcome.Status.ExitStatus() != i {
				t.Errorf("%d: got %q, %+v", i, output, outcome)
			}
		})
	}
	group.Wait()
}

func TestNoDescriptorStaysOpen(t *testing.T) {
	run(t, sh(":"))
	before, _ := os.ReadDir("/proc/self/fd")
	for range 20 {
		command := sh("echo x; exit 1")
		command.Stdin = []byte("in")
		command.Stderr = func([]byte) {}
		run(t, command)
		command.Path = "/does/not/exist"
		Run(context.Background(), command)
	}
	time.Sleep(10 * time.Millisecond)
	after, _ := os.ReadDir("/proc/self/fd")
	if len(after) > len(before) {
		t.Errorf("%d descriptors became %d", len(before), len(after))
	}
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

func TestWaitingBlocksNoThread(t *testing.T) {
	run(t, sh(":"))
	before := threads(t)
	ctx, cancel := context.WithCancel(context.Background())
	var started, group sync.WaitGroup
	started.Add(100)
	for range 100 {
		group.Go(func() {
			command := sh("echo started; exec sleep 1000")
			command.Stdout = func([]byte) { started.Done() }
			Run(ctx, command)
		})
	}
	started.Wait()
	during := threads(t)
	cancel()
	group.Wait()
	t.Logf("%d threads before, %d with 100 programs", before, during)
	if during > before+12 {
		t.Errorf("%d threads became %d", before, during)
	}
}
