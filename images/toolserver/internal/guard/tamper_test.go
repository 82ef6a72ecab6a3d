package guard

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsTakenAwayIsNoticed(t *testing.T) {
	if mode := os.Getenv("GUARD_TEST_TAMPER"); mode != "" {
		tamperChild(mode)
		return
	}
	for mode, want := range map[string]string{
		"nothing":       "",
		"a soft limit":  "",
		"a hard limit":  "RLIMIT_NOFILE",
		"some priority": "priority",

		"some priority, seen by a later look":   "priority",
		"a dead thread's number, now another's": "",
	} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestWhatIsTakenAwayIsNoticed$")
			cmd.Env = append(os.Environ(), "GUARD_TEST_TAMPER="+mode)
			out, err := cmd.CombinedOutput()
			if err != nil || string(out) != want {
				t.Fatalf("got %q, %v, want %q", out, err, want)
			}
		})
	}
}

// tamperChild does to itself what a model would do to it, and prints what is noticed.
func tamperChild(mode string) {
	b, err := Observe()
	if err != nil {
		panic(err)
	}
	limit := b.limits[syscall.RLIMIT_NOFILE]
	switch mode {
	case "a soft limit":
		_, err = prlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max})
	case "a hard limit":
		_, err = prlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: 3})
	case "some priority, seen by a later look":
		b.lost()
		fallthrough
	case "some priority":
		err = syscall.Setpriority(syscall.PRIO_PROCESS, os.Getpid(), 19)
	}
	if mode == "a dead thread's number, now another's" {
		b.lost()
		b.threads = append(b.threads, niceChild())
	}
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString(b.lost())
	if now, _ := prlimit(syscall.RLIMIT_NOFILE, nil); mode == "a soft limit" && now != limit {
		panic("the soft limit was not raised again")
	}
	os.Exit(0)
}

// niceChild is a command that asks for little itself, as a model's may.
func niceChild() int {
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, 19); err != nil {
		panic(err)
	}
	return cmd.Process.Pid
}

func TestAFreeSandboxIsLookedAtLessOften(t *testing.T) {
	for _, c := range []struct {
		name  string
		taken time.Duration
		want  time.Duration
	}{
		{"nobody takes it", time.Hour, watchFreeEvery},
		{"somebody takes it at once", 0, watchEvery},
		{"somebody takes it later", 5 * time.Second, 5*time.Second + watchEvery},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := Observe()
				if err != nil {
					t.Fatal(err)
				}
				b.weight++ // as if it had been lowered since
				taken := make(chan struct{})
				taking := time.AfterFunc(c.taken, func() { close(taken) })
				defer taking.Stop()
				began := time.Now()

				b.Watch(taken)

				if took := time.Since(began); took != c.want {
					t.Errorf("noticed after %v, want %v", took, c.want)
				}
			})
		})
	}
}
