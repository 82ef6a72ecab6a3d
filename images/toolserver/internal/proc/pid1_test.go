package proc

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

// What only PID 1 may do is tested in a namespace of its own, by this same
// program run again as its PID 1.

const insideVariable = "PROC_TEST_INSIDE"

func TestAsPID1(t *testing.T) {
	unshare := "/usr/bin/unshare"
	if _, err := os.Stat(unshare); err != nil || os.Getuid() != 0 {
		t.Skip("needs root and unshare")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := sh("")
	command.Path = unshare
	command.Args = []string{"unshare", "--pid", "--fork", "--mount-proc", self, "-test.run", "^TestInside", "-test.v"}
	command.Env = append(command.Env, insideVariable+"=1")
	output, outcome := run(t, command)
	if outcome.Status != 0 {
		t.Errorf("%+v\n%s", outcome, output)
	}
}

func inside(t *testing.T) {
	if os.Getenv(insideVariable) == "" || os.Getpid() != 1 {
		t.Skip("runs as PID 1 only")
	}
}

func TestInsideALostMarkDoesNotSave(t *testing.T) {
	inside(t)
	out := filepath.Join(t.TempDir(), "pid")
	command := sh("setsid bash -c 'ulimit -S -R unlimited && echo $$ >$OUT; exec sleep 1000' >/dev/null 2>&1 &\nwhile ! [ -s $OUT ]; do sleep 0.01; done")
	command.Env = append(command.Env, "OUT="+out)
	run(t, command)
	text, _ := os.ReadFile(out)
	for _, pid := range pidsIn(t, string(text)) {
		waitFor(t, "the stray is gone", func() bool { return !alive(pid) })
	}
}

func TestInsideTheNamespaceIsClearedOnlyWhenNothingIsLive(t *testing.T) {
	inside(t)
	k := theKeeper()
	mark := NewMark()
	process, err := Start(Spec{Path: "/bin/sleep", Args: []string{"sleep", "1000"}, Descriptors: []int{Null(), Null(), Null()}}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k.killNamespace() || !alive(process.Pid) {
		t.Error("a live call was killed")
	}
	k.mu.Lock()
	delete(k.live, mark)
	k.mu.Unlock()
	if !k.killNamespace() || !process.Settle() {
		t.Error("nothing was killed")
	}
}

func TestInsideNoChainOfForksOutrunsEndAll(t *testing.T) {
	inside(t)
	count := filepath.Join(t.TempDir(), "count")
	// Each one starts the next and dies; there is hardly ever more than one.
	script := `link() { echo x >>$OUT; link & }; link`
	_, err := Start(Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "OUT=" + count},
		Descriptors: []int{Null(), Null(), Null()},
	}, NewMark(), nil)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		info, err := os.Stat(count)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	waitFor(t, "the chain is long", func() bool { return size() > 100 })
	if left := EndAll(); left != 0 {
		t.Errorf("%d are left", left)
	}
	before := size()
	run(t, sh("sleep 0.1"))
	if after := size(); after != before {
		t.Errorf("it went on from %d to %d", before, after)
	}
}

func TestOthersNeverClearTheirNamespace(t *testing.T) {
	if os.Getpid() == 1 {
		t.Skip("we are PID 1")
	}
	if theKeeper().killNamespace() {
		t.Fatal("it did")
	}
}

func TestMain(m *testing.M) {
	// As a test runner under nohup would have it: children must not see this.
	signal.Ignore(syscall.SIGHUP)
	os.Exit(m.Run())
}
