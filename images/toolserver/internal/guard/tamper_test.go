package guard

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
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
	case "some priority":
		err = syscall.Setpriority(syscall.PRIO_PROCESS, os.Getpid(), 19)
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
