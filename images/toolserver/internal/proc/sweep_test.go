package proc

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// waitFor waits for a condition that others bring about.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestNothingSurvivesItsCall(t *testing.T) {
	// Each script leaves a process behind that writes its number to $OUT.
	cases := []struct{ name, script string }{
		{"a background process", `sh -c 'echo $$ >$OUT; exec sleep 1000' &`},
		{"one that holds the output open", `sh -c 'echo $$ >$OUT; while :; do echo x; sleep 0.01; done' &`},
		{"one in a session of its own", `setsid sh -c 'echo $$ >$OUT; exec sleep 1000' >/dev/null 2>&1 &`},
		{"one that ignores signals", `nohup setsid sh -c 'trap "" TERM HUP INT; echo $$ >$OUT; while :; do sleep 1; done' >/dev/null 2>&1 &`},
		{"one forked twice", `(setsid sh -c '(sh -c "echo \$\$ >$OUT; exec sleep 1000" &) ' &)`},
		{"one without an environment", `env -i OUT=$OUT PATH=$PATH setsid sh -c 'echo $$ >$OUT; exec env -i sleep 1000' &`},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "pid")
			command := sh(test.script + "\nwhile ! [ -s $OUT ]; do sleep 0.01; done")
			command.Env = append(command.Env, "OUT="+out)
			_, outcome := run(t, command)
			if outcome.Status != 0 || outcome.Left != 0 {
				t.Fatalf("got %+v", outcome)
			}
			text, _ := os.ReadFile(out)
			for _, pid := range pidsIn(t, string(text)) {
				if alive(pid) {
					t.Errorf("%d is alive", pid)
				}
			}
		})
	}
}

func TestASmallForkStormIsStopped(t *testing.T) {
	// Every process keeps replacing itself, in chains of bounded length.
	script := `
chain() { [ $1 -le 0 ] || { sleep 0.01; chain $(($1 - 1)) & }; }
i=0; while [ $i -lt 60 ]; do setsid sh -c "$(cat <<'END'
chain() { [ $1 -le 0 ] || { sleep 0.01; chain $(($1 - 1)) & }; }
chain 40 & chain 40 & sleep 1000
END
)" >/dev/null 2>&1 & i=$((i + 1)); done; echo $$; sleep 0.2`
	_, outcome := run(t, sh(script))
	if outcome.Left != 0 {
		t.Errorf("got %+v", outcome)
	}
	k := theKeeper()
	if seen := k.scan(func(_ int, mark Mark) bool { return k.ours(mark) }); len(seen.wanted) > 0 {
		t.Errorf("%d processes are left", len(seen.wanted))
	}
}

func TestOrphansAreReaped(t *testing.T) {
	mark := NewMark()
	defer End(0, mark)
	process, err := Start(Spec{
		Path: "/bin/sh", Env: []string{"PATH=/usr/bin:/bin"},
		Args:        []string{"sh", "-c", "i=0; while [ $i -lt 50 ]; do (sleep 0.05 &); i=$((i+1)); done"},
		Descriptors: []int{Null(), Null(), Null()},
	}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-process.Done()
	waitFor(t, "no zombie of ours", func() bool {
		return len(theKeeper().scan(func(_ int, of Mark) bool { return of == mark }).wanted) == 0
	})
}

func TestASweepLeavesOthersAlone(t *testing.T) {
	other := NewMark()
	bystander, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Descriptors: []int{Null(), Null(), Null()}}, other, nil)
	if err != nil {
		t.Fatal(err)
	}
	foreign := startForeign(t)
	run(t, sh("sleep 1000 & sleep 1000 & exit 0"))
	if !alive(bystander.Pid) {
		t.Error("a live call's process was killed")
	}
	if !alive(foreign.Pid) {
		t.Error("another toolserver's process was killed")
	}
	if left := End(bystander.Pid, other); left != 0 || alive(bystander.Pid) {
		t.Error("its own end did not kill it")
	}
}

// startForeign starts a process with the mark of another toolserver.
func startForeign(t *testing.T) *Process {
	t.Helper()
	mark := NewMark()
	process, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Descriptors: []int{Null(), Null(), Null()}}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remark(process.Pid, mark^(1<<numberBits)); err != nil {
		t.Fatal(err)
	}
	End(0, mark)
	t.Cleanup(func() {
		process.Kill(syscall.SIGKILL)
		process.Settle()
	})
	return process
}

func TestAForgedMarkOfNobodyIsSwept(t *testing.T) {
	mark := NewMark()
	process, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Descriptors: []int{Null(), Null(), Null()}}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := theKeeper()
	// A leader is spared, so take it for an orphan.
	k.mu.Lock()
	delete(k.waiting, process.Pid)
	delete(k.live, mark)
	k.mu.Unlock()
	if err := Remark(process.Pid, k.boot|numberMask-5); err != nil {
		t.Fatal(err)
	}
	run(t, sh("sleep 1000 &"))
	waitFor(t, "the stray is gone", func() bool { return !alive(process.Pid) })
}

func TestTheMarkIsReadTheSameFromBothPlaces(t *testing.T) {
	mark := NewMark()
	process, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Descriptors: []int{Null(), Null(), Null()}}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer End(process.Pid, mark)
	k := theKeeper()
	file := markInFile(fmt.Sprintf("/proc/%d/limits", process.Pid), k.marker)
	if asked := k.markOf(process.Pid); asked != mark || file != mark {
		t.Errorf("mark %x, asked %x, file %x", mark, asked, file)
	}
	if own := k.markOf(k.self); k.ours(own) {
		t.Errorf("we wear the mark %x ourselves", own)
	}
}

func TestCallsInParallelDoNotSweepEachOther(t *testing.T) {
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			var out bytes.Buffer
			command := sh("for i in 1 2 3 4 5; do sh -c 'sleep 0.02; echo x'; done; sleep 1000 &")
			command.Stdout = func(chunk []byte) { out.Write(chunk) }
			outcome, err := Run(context.Background(), command)
			if err != nil || outcome.Status != 0 || strings.Count(out.String(), "x") != 5 {
				t.Errorf("got %q, %+v, %v", out.String(), outcome, err)
			}
		})
	}
	group.Wait()
}

func TestWhereTheFirstLimitIsRefused(t *testing.T) {
	cases := []struct {
		name   string
		marker int
		script string
	}{
		{"the second carries the mark as well", rlimitRSS, `env -i PATH=$PATH OUT=$OUT setsid sh -c 'echo $$ >$OUT; exec sleep 1000' >/dev/null 2>&1 &`},
		{"without any, what stays in its session is still found", noMarker, `sh -c 'echo $$ >$OUT; exec sleep 1000' >/dev/null 2>&1 &`},
	}
	k := theKeeper()
	usual := k.marker
	defer func() { k.marker = usual }()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			k.marker = test.marker
			out := filepath.Join(t.TempDir(), "pid")
			command := sh(test.script + "\nwhile ! [ -s $OUT ]; do sleep 0.01; done")
			command.Env = append(command.Env, "OUT="+out)
			run(t, command)
			text, _ := os.ReadFile(out)
			for _, pid := range pidsIn(t, string(text)) {
				if alive(pid) {
					t.Errorf("%d is alive", pid)
				}
			}
		})
	}
}

func TestEndAllLeavesNothingThatDescendsFromUs(t *testing.T) {
	cases := []struct{ name, script string }{
		{"of a call that runs", `echo $$ >$OUT; exec sleep 1000`},
		{"in a session of its own", `setsid nohup sh -c 'echo $$ >$OUT; exec sleep 1000' >/dev/null 2>&1 & sleep 1000`},
		{"that lost its mark", `setsid bash -c 'ulimit -S -R unlimited; echo $$ >$OUT; exec sleep 1000' & sleep 1000`},
		{"with the mark of another", `setsid bash -c 'ulimit -S -R 1152921504606846977; echo $$ >$OUT; exec sleep 1000' & sleep 1000`},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "pid")
			process, err := Start(Spec{
				Path: "/bin/sh", Args: []string{"sh", "-c", test.script},
				Env:         []string{"PATH=/usr/bin:/bin", "OUT=" + out},
				Descriptors: []int{Null(), Null(), Null()},
			}, NewMark(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var text []byte
			waitFor(t, "it began", func() bool { text, _ = os.ReadFile(out); return len(text) > 0 })
			if left := EndAll(); left != 0 {
				t.Errorf("%d are left", left)
			}
			for _, pid := range append(pidsIn(t, string(text)), process.Pid) {
				if alive(pid) {
					t.Errorf("%d is alive", pid)
				}
			}
			if !theKeeper().reap() {
				t.Error("we have children")
			}
		})
	}
}

func TestEndAllLeavesTheRestOfTheMachineAlone(t *testing.T) {
	parent := os.Getppid()
	if left := EndAll(); left != 0 || !alive(parent) {
		t.Errorf("%d are left, our parent is alive: %t", left, alive(parent))
	}
}
