package guard

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// Linux lets nothing inside a pid namespace kill or stop its PID 1. gVisor
// does, so there a filter of system calls stands in for that rule: it is
// inherited by every command, and drops what would end or stop us.

const (
	sysSeccomp             = seccompNumber
	setModeFilter          = 1
	synchronizeThreads     = 1
	prGetNoNewPrivs        = 39
	readAllOfTheKernelLog  = 3
	returnAllow            = 0x7fff0000
	returnErrno            = 0x00050000
	offsetOfNumber         = 0
	offsetOfArchitecture   = 4
	offsetOfArguments      = 16
	loadWord               = 0x20
	jumpIfEqual            = 0x15
	answer                 = 0x06
	setSignalOfDescriptor  = 10
	pid1                   = 1
	noEffect, notPermitted = 0, uint32(syscall.EPERM)
)

// instruction is the kernel's struct sock_filter.
type instruction struct {
	code uint16
	yes  uint8
	no   uint8
	k    uint32
}

// argument is a condition on one argument's lower half: process ids, signals
// and commands are 32 bits wide.
type argument struct {
	index uint32
	value uint32
}

// rule drops one system call when all conditions hold, with an error or, where
// Linux would not tell either, as if it had been done.
type rule struct {
	number uint32
	where  []argument
	error  uint32
}

// shieldRules name the ways to send PID 1 a signal that nobody can handle.
// By a thread's id alone nothing tells whose thread it is; such a signal ends
// or stops its whole process, and programs have other calls for that.
func shieldRules() []rule {
	rules := []rule{
		// Whoever is in our process group could signal all of it.
		{syscall.SYS_SETPGID, []argument{{1, pid1}}, notPermitted},
		{syscall.SYS_PTRACE, []argument{{1, pid1}}, notPermitted},
		// Signals that a descriptor sends say of themselves that the kernel raised them.
		{syscall.SYS_FCNTL, []argument{{1, setSignalOfDescriptor}}, notPermitted},
	}
	for _, sig := range []uint32{uint32(syscall.SIGKILL), uint32(syscall.SIGSTOP)} {
		rules = append(rules,
			rule{syscall.SYS_KILL, []argument{{0, pid1}, {1, sig}}, noEffect},
			rule{syscall.SYS_TGKILL, []argument{{0, pid1}, {2, sig}}, noEffect},
			rule{syscall.SYS_TKILL, []argument{{1, sig}}, notPermitted},
			rule{syscall.SYS_RT_SIGQUEUEINFO, []argument{{0, pid1}, {1, sig}}, noEffect},
			rule{syscall.SYS_RT_TGSIGQUEUEINFO, []argument{{0, pid1}, {2, sig}}, noEffect},
		)
	}
	return rules
}

func assembled(rules []rule) []instruction {
	program := []instruction{
		{code: loadWord, k: offsetOfArchitecture},
		{code: jumpIfEqual, yes: 1, k: architecture},
		{code: answer, k: returnAllow},
	}
	for _, r := range rules {
		block := []instruction{{code: loadWord, k: offsetOfNumber}, {code: jumpIfEqual, k: r.number}}
		for _, a := range r.where {
			block = append(block,
				instruction{code: loadWord, k: offsetOfArguments + 8*a.index}, // little-endian: the lower half
				instruction{code: jumpIfEqual, k: a.value})
		}
		block = append(block, instruction{code: answer, k: returnErrno | r.error})
		for i := range block {
			if block[i].code == jumpIfEqual {
				block[i].no = uint8(len(block) - i - 1) // to the next rule
			}
		}
		program = append(program, block...)
	}
	return append(program, instruction{code: answer, k: returnAllow})
}

// shield installs the filter where it is needed: as PID 1 under gVisor.
func shield() error {
	if os.Getpid() != 1 || !underGVisor() {
		return nil
	}
	if set, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, prGetNoNewPrivs, 0, 0); set != 1 {
		// A pod that may gain privileges; nobody but root may filter there.
		return nil
	}
	filter := assembled(shieldRules())
	program := struct {
		length uint16
		filter *instruction
	}{uint16(len(filter)), &filter[0]}
	_, _, errno := syscall.RawSyscall(sysSeccomp, setModeFilter, synchronizeThreads, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("cannot shield PID 1: %w", errno)
	}
	return nil
}

// underGVisor asks for the kernel's log, which gVisor shows to everybody and
// begins with its name.
func underGVisor() bool {
	var log [1 << 12]byte
	n, _, errno := syscall.RawSyscall(syscall.SYS_SYSLOG, readAllOfTheKernelLog,
		uintptr(unsafe.Pointer(&log[0])), uintptr(len(log)))
	return errno == 0 && bytes.Contains(log[:min(int(n), len(log))], []byte("gVisor"))
}
