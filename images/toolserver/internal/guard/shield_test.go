package guard

import (
	"syscall"
	"testing"
)

// call is what the kernel shows a filter, in its words of 32 bits.
type call struct {
	architecture uint32
	number       uint32
	arguments    [6]uint32
}

func (c call) word(offset uint32) uint32 {
	switch offset {
	case offsetOfNumber:
		return c.number
	case offsetOfArchitecture:
		return c.architecture
	}
	return c.arguments[(offset-offsetOfArguments)/8]
}

// judge runs a filter as the kernel does.
func judge(t *testing.T, filter []instruction, c call) uint32 {
	t.Helper()
	var accumulator uint32
	for at := 0; at < len(filter); at++ {
		switch step := filter[at]; step.code {
		case loadWord:
			accumulator = c.word(step.k)
		case jumpIfEqual:
			if accumulator == step.k {
				at += int(step.yes)
			} else {
				at += int(step.no)
			}
		case answer:
			return step.k
		}
	}
	t.Fatal("the filter came to no end")
	return 0
}

func TestTheShieldDropsWhatWouldEndOrStopPID1AndNothingElse(t *testing.T) {
	const kill, stop, term, urg = uint32(syscall.SIGKILL), uint32(syscall.SIGSTOP), uint32(syscall.SIGTERM), uint32(syscall.SIGURG)
	const silently, openly = returnErrno | noEffect, returnErrno | notPermitted
	cases := []struct {
		name      string
		number    uint32
		arguments [6]uint32
		want      uint32
	}{
		{"kill -9 1", syscall.SYS_KILL, [6]uint32{1, kill}, silently},
		{"kill -STOP 1", syscall.SYS_KILL, [6]uint32{1, stop}, silently},
		{"kill -TERM 1, which is handled", syscall.SYS_KILL, [6]uint32{1, term}, returnAllow},
		{"kill -9 of another", syscall.SYS_KILL, [6]uint32{7, kill}, returnAllow},
		{"kill -STOP of a group", syscall.SYS_KILL, [6]uint32{^uint32(0) - 6, stop}, returnAllow},
		{"stop a thread of PID 1", syscall.SYS_TGKILL, [6]uint32{1, 5, stop}, silently},
		{"the runtime's own signal", syscall.SYS_TGKILL, [6]uint32{1, 5, urg}, returnAllow},
		{"stop any thread by its id", syscall.SYS_TKILL, [6]uint32{5, stop}, openly},
		{"raise, as C libraries do it", syscall.SYS_TKILL, [6]uint32{5, term}, returnAllow},
		{"queue a stop", syscall.SYS_RT_SIGQUEUEINFO, [6]uint32{1, stop}, silently},
		{"queue a kill for a thread", syscall.SYS_RT_TGSIGQUEUEINFO, [6]uint32{1, 5, kill}, silently},
		{"let a pipe send a fault", syscall.SYS_FCNTL, [6]uint32{3, setSignalOfDescriptor, uint32(syscall.SIGILL)}, openly},
		{"any other fcntl", syscall.SYS_FCNTL, [6]uint32{3, 4, stop}, returnAllow},
		{"join the group of PID 1", syscall.SYS_SETPGID, [6]uint32{0, 1}, openly},
		{"a group of one's own", syscall.SYS_SETPGID, [6]uint32{0, 0}, returnAllow},
		{"trace PID 1", syscall.SYS_PTRACE, [6]uint32{16, 1}, openly},
		{"trace a child", syscall.SYS_PTRACE, [6]uint32{16, 7}, returnAllow},
		{"anything else", syscall.SYS_READ, [6]uint32{1, kill, stop}, returnAllow},
	}
	filter := assembled(shieldRules())
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if got := judge(t, filter, call{architecture, test.number, test.arguments}); got != test.want {
				t.Errorf("got %#x, want %#x", got, test.want)
			}
		})
	}
	if got := judge(t, filter, call{0, syscall.SYS_KILL, [6]uint32{1, kill}}); got != returnAllow {
		t.Errorf("numbers of another architecture mean something else, yet got %#x", got)
	}
}
