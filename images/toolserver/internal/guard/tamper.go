package guard

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const (
	// watchEvery is well below what a caller waits for an answer.
	watchEvery = 2 * time.Second
	// watchFreeEvery is for a sandbox that nobody uses yet: there may be
	// hundreds of them on a node, and waking up costs more than looking.
	watchFreeEvery = 10 * time.Second
	// listThreadsEvery so many looks: listing them costs more than all the
	// rest of a look, and after the start they hardly change.
	listThreadsEvery = 16
)

// limitNames are the resource limits whose loss PID 1 would not survive, or
// not serve under. RLIMIT_RTTIME is left out: the tools use it as a mark.
var limitNames = map[int]string{
	syscall.RLIMIT_CPU: "RLIMIT_CPU", syscall.RLIMIT_FSIZE: "RLIMIT_FSIZE", syscall.RLIMIT_DATA: "RLIMIT_DATA",
	syscall.RLIMIT_STACK: "RLIMIT_STACK", syscall.RLIMIT_NOFILE: "RLIMIT_NOFILE", syscall.RLIMIT_AS: "RLIMIT_AS",
	rlimitNProc: "RLIMIT_NPROC",
}

const rlimitNProc = 6

// Baseline is how the process was allowed to run at its start.
//
// A process of the same user may lower another's resource limits and its
// priority, PID 1's too, and nobody without privileges can raise them again.
// So lowered, PID 1 accepts no connection or gets no CPU, which from outside
// looks like a broken node: a model could mask a bad rollout with one command.
// It cannot be prevented, but it can be told from a fault.
type Baseline struct {
	limits map[int]syscall.Rlimit
	policy uintptr
	weight uintptr

	looks   int
	threads []int
}

// Observe takes the baseline.
func Observe() (*Baseline, error) {
	b := &Baseline{limits: map[int]syscall.Rlimit{}}
	for resource, name := range limitNames {
		limit, err := prlimit(resource, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.limits[resource] = limit
	}
	var err error
	b.policy, b.weight, err = scheduling(syscall.Gettid())
	return b, err
}

// Watch returns when something was taken away for good, and says what. It
// looks seldom until the sandbox is taken.
func (b *Baseline) Watch(taken <-chan struct{}) string {
	looks := time.NewTicker(watchFreeEvery)
	defer looks.Stop()
	for {
		select {
		case <-taken:
			looks.Reset(watchEvery)
			taken = nil
		case <-looks.C:
			if lost := b.lost(); lost != "" {
				return lost
			}
		}
	}
}

// lost names what has been lowered, and raises again what can be.
func (b *Baseline) lost() string {
	for resource, want := range b.limits {
		limit, err := prlimit(resource, nil)
		if err != nil || limit == want {
			continue
		}
		if limit.Max < want.Max {
			return limitNames[resource]
		}
		// The soft limit is ours to raise as long as the hard one stands.
		if _, err := prlimit(resource, &want); err != nil {
			return limitNames[resource]
		}
	}
	if b.looks%listThreadsEvery == 0 {
		b.threads = threads()
	}
	b.looks++
	// Each thread has a priority of its own.
	for _, tid := range b.threads {
		// A thread that has ended may have left its number to a command of the model's.
		if b.isLowered(tid) && slices.Contains(threads(), tid) && b.isLowered(tid) {
			return "priority"
		}
	}
	return ""
}

func (b *Baseline) isLowered(tid int) bool {
	policy, weight, err := scheduling(tid)
	return err == nil && (policy != b.policy || weight < b.weight)
}

// threads are the process's own, or none if they cannot be listed.
func threads() []int {
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, tid)
		}
	}
	return found
}

// prlimit is called directly: syscall.Setrlimit would also change what
// children inherit.
func prlimit(resource int, set *syscall.Rlimit) (old syscall.Rlimit, err error) {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, uintptr(resource),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(&old)), 0, 0)
	if errno != 0 {
		return old, errno
	}
	return old, nil
}

// scheduling returns a thread's policy, and its priority as the kernel counts
// it here: 20 less its niceness, so that more is better.
func scheduling(tid int) (policy, weight uintptr, err error) {
	policy, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETSCHEDULER, uintptr(tid), 0, 0)
	if errno != 0 {
		return 0, 0, errno
	}
	const prioProcess = 0
	weight, _, errno = syscall.RawSyscall(syscall.SYS_GETPRIORITY, prioProcess, uintptr(tid), 0)
	if errno != 0 {
		return 0, 0, errno
	}
	return policy, weight, nil
}
