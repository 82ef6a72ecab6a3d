package guard

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func TestThreadsExistBeforeTheyAreNeeded(t *testing.T) {
	const n = 40
	reserveThreads(n)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) < n {
		t.Fatalf("%d threads", len(tasks))
	}
}

// The filter tells senders apart by what the kernel writes down about them. A
// child of this test stands for the program; it is not PID 1, but the filter
// does not ask for that.
func TestOnlySignalsFromInsideAreDropped(t *testing.T) {
	if mode := os.Getenv("GUARD_TEST_CHILD"); mode != "" {
		child(mode)
		return
	}
	cases := []struct {
		name, mode string
		survives   bool
	}{
		{"a fault of its own is still a panic that can be recovered", "fault", true},
		{"kill -SEGV from inside", "kill-segv", true},
		{"sigqueue with SIGSEGV from inside", "queue-segv", true},
		{"kill -QUIT from inside", "kill-quit", true},
		{"kill -ABRT from inside", "kill-abrt", true},
		{"kill -TERM from inside", "kill-term", true},
		{"kill -SYS from inside", "kill-sys", true},
		{"a real-time signal that Go has no handler for", "kill-34", true},
		{"SIGTERM that the kernel was made to send, by a pipe", "pipe-term", true},
		{"SIGSTKFLT that the kernel was made to send, by a pipe", "pipe-stkflt", true},
		{"SIGSEGV that the kernel was made to send, by a pipe", "pipe-segv", true},
		{"without the filter kill -SEGV is deadly", "unfiltered", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestOnlySignalsFromInsideAreDropped$")
			cmd.Env = append(os.Environ(), "GUARD_TEST_CHILD="+c.mode)
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.survives {
				t.Fatalf("survived: %v (%v)\n%s", err == nil, err, out)
			}
		})
	}
}

func child(mode string) {
	stop, err := Signals()
	if err == nil && mode != "unfiltered" {
		err = filterSignals()
	}
	if err != nil {
		panic(err)
	}
	switch mode {
	case "fault":
		recoverFault()
	case "kill-segv", "unfiltered":
		fromOutsideThisProcess("-SEGV")
	case "queue-segv":
		queue(syscall.SIGSEGV)
	case "kill-quit":
		fromOutsideThisProcess("-QUIT")
	case "kill-abrt":
		fromOutsideThisProcess("-ABRT")
	case "kill-sys":
		fromOutsideThisProcess("-SYS")
	case "kill-term":
		fromOutsideThisProcess("-TERM")
	case "kill-34":
		fromOutsideThisProcess("-34")
	case "pipe-term":
		byPipe(syscall.SIGTERM)
	case "pipe-stkflt":
		byPipe(syscall.SIGSTKFLT)
	case "pipe-segv":
		byPipe(syscall.SIGSEGV)
	}
	// Nothing announces a dropped signal; a delivered one arrives at once.
	select {
	case <-stop:
		panic("asked to stop")
	case <-time.After(100 * time.Millisecond):
	}
	os.Exit(0)
}

func recoverFault() {
	defer func() {
		if recover() == nil {
			panic("no panic")
		}
	}()
	var nothing *int
	*nothing = 1
}

func fromOutsideThisProcess(flag string) {
	script := "kill " + flag + " $PPID"
	if err := exec.Command("/bin/sh", "-c", script).Run(); err != nil {
		panic(err)
	}
}

// queue sends what kill(2) does not: a signal whose si_code is SI_QUEUE, which
// Go takes for a fault of its own.
func queue(sig syscall.Signal) {
	const siQueue = -1
	info := [32]int32{0: int32(sig), 2: siQueue}
	_, _, errno := syscall.RawSyscall(syscall.SYS_RT_SIGQUEUEINFO, uintptr(os.Getpid()), uintptr(sig),
		uintptr(unsafe.Pointer(&info)))
	if errno != 0 {
		panic(errno)
	}
}

// byPipe makes the kernel send a signal when a pipe becomes readable.
func byPipe(sig syscall.Signal) {
	const setSignal = 10 // F_SETSIG
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		panic(err)
	}
	for _, set := range [][2]uintptr{
		{syscall.F_SETOWN, uintptr(os.Getpid())}, {setSignal, uintptr(sig)}, {syscall.F_SETFL, syscall.O_ASYNC},
	} {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(ends[0]), set[0], set[1]); errno != 0 {
			panic(errno)
		}
	}
	if _, err := syscall.Write(ends[1], []byte{0}); err != nil {
		panic(err)
	}
}
