package proc

import (
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// Mark tells whose a process is: a soft resource limit that limits nothing.
// Children inherit it through fork and exec, whatever they do to their
// environment, session or parent.
type Mark uint64

// A mark is too large to limit anything, names this run of the program in its
// middle bits (two toolservers on one machine never touch each other's
// processes), and counts in its low bits.
const (
	markBase   Mark = 1 << 60
	numberBits      = 20
	numberMask Mark = 1<<numberBits - 1
	bootMask   Mark = (1<<20 - 1) << numberBits
)

// The limits that can carry a mark. RTTIME concerns only real-time threads;
// RSS concerns nobody since Linux 2.4 and is there for gVisor, which refuses
// to set RTTIME.
const (
	rlimitRTTIME = 15
	rlimitRSS    = 5
	noMarker     = -1
)

const unlimited = math.MaxUint64

func findMarker() int {
	for _, resource := range []int{rlimitRTTIME, rlimitRSS} {
		var before syscall.Rlimit
		if prlimit(0, resource, nil, &before) != nil || before.Max != unlimited {
			continue
		}
		trial := syscall.Rlimit{Cur: uint64(markBase), Max: unlimited}
		if prlimit(0, resource, &trial, nil) != nil {
			continue
		}
		trial.Cur = unlimited
		if prlimit(0, resource, &trial, nil) == nil {
			return resource
		}
	}
	return noMarker
}

// NewMark gives out a mark; it is live until End.
func NewMark() Mark {
	k := theKeeper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		k.sequence++
		mark := k.boot | Mark(k.sequence)&numberMask
		if _, taken := k.live[mark]; !taken {
			k.live[mark] = struct{}{}
			return mark
		}
	}
}

// wear puts the mark on this program itself, for the next fork to inherit;
// zero takes it off.
func (k *keeper) wear(mark Mark) {
	if k.marker == noMarker {
		return
	}
	limit := syscall.Rlimit{Cur: uint64(mark), Max: unlimited}
	if mark == 0 {
		limit.Cur = unlimited
	}
	prlimit(0, k.marker, &limit, nil)
}

// Remark gives a running process another mark, which what it starts from now
// on inherits.
func Remark(pid int, mark Mark) error {
	k := theKeeper()
	if k.marker == noMarker {
		return syscall.ENOTSUP
	}
	limit := syscall.Rlimit{Cur: uint64(mark), Max: unlimited}
	return prlimit(pid, k.marker, &limit, nil)
}

// markOf reads the mark of a process, or a value that is none.
func (k *keeper) markOf(pid int) Mark {
	if k.marker == noMarker {
		return 0
	}
	var limit syscall.Rlimit
	err := prlimit(pid, k.marker, nil, &limit)
	if err == syscall.EPERM {
		// Someone else's by now (a set-uid program), but everyone may read this.
		return markInFile("/proc/"+strconv.Itoa(pid)+"/limits", k.marker)
	}
	if err != nil {
		return 0
	}
	return Mark(limit.Cur)
}

func markInFile(path string, resource int) Mark {
	name := "Max realtime timeout"
	if resource == rlimitRSS {
		name = "Max resident set"
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, name)
		if fields := strings.Fields(rest); ok && len(fields) > 0 {
			value, _ := strconv.ParseUint(fields[0], 10, 64)
			return Mark(value)
		}
	}
	return 0
}

// ours says that a mark was given out by this run of the program.
func (k *keeper) ours(mark Mark) bool { return mark&^numberMask == k.boot }

func prlimit(pid, resource int, set, get *syscall.Rlimit) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(resource),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
