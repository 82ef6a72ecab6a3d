package proc

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
)

// found is what one look at the process table showed.
type found struct {
	// wanted carry one of the marks that were asked for.
	wanted []int
	// strays belong to no live call or session: a forged mark, a lost one,
	// or a process that slipped through an earlier sweep.
	strays []int
}

// scan looks once at every process. It cannot be complete while processes
// fork (the table is read in pieces), so whoever kills looks again.
func (k *keeper) scan(wanted func(pid int, mark Mark) bool) found {
	var result found
	for _, pid := range k.pids() {
		if pid == k.self {
			continue
		}
		mark := k.markOf(pid)
		switch {
		case wanted(pid, mark):
			result.wanted = append(result.wanted, pid)
		case k.stray(pid, mark):
			result.strays = append(result.strays, pid)
		}
	}
	return result
}

func (k *keeper) stray(pid int, mark Mark) bool {
	k.mu.Lock()
	_, live := k.live[mark]
	_, leader := k.waiting[pid]
	blind := k.marker == noMarker && len(k.live) > 0
	k.mu.Unlock()
	if live || leader || blind {
		return false
	}
	if k.ours(mark) {
		return true
	}
	// As PID 1 every process of the namespace is ours, except one that was
	// put there from outside (kubectl exec), whose parent is not in it. As
	// anyone else we may look at a whole machine: hands off.
	return k.self == 1 && k.descends(pid)
}

// descends follows the parents up to us.
func (k *keeper) descends(pid int) bool {
	for range 1 << 16 {
		parent := readStat(pid).parent
		if parent == k.self || parent <= 0 {
			return parent == k.self
		}
		pid = parent
	}
	return false
}

// pids lists the process table without allocating a file or a name.
func (k *keeper) pids() []int {
	k.scanning.Lock()
	defer k.scanning.Unlock()
	if _, err := syscall.Seek(k.proc, 0, 0); err != nil {
		return nil
	}
	list := make([]int, 0, 64)
	for {
		n, err := syscall.ReadDirent(k.proc, k.dirents)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return list
		}
		list = appendPids(list, k.dirents[:n])
	}
}

// appendPids picks the numbers out of a buffer of linux_dirent64: inode and
// offset (8 bytes each), record length (2), type (1), name.
func appendPids(list []int, buffer []byte) []int {
	const nameAt = 19
	for len(buffer) > nameAt {
		length := int(binary.NativeEndian.Uint16(buffer[16:]))
		if length <= nameAt || length > len(buffer) {
			break
		}
		name := buffer[nameAt:length]
		buffer = buffer[length:]
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		pid := 0
		for _, c := range name {
			if c < '0' || c > '9' {
				break
			}
			pid = pid*10 + int(c-'0')
		}
		list = append(list, pid)
	}
	return list
}

type stat struct {
	state   byte
	parent  int
	session int
}

// readStat reads what /proc says; the zero value when there is no such process.
func readStat(pid int) stat {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}
	}
	// The name in parentheses may itself hold parentheses and spaces.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 4 {
		return stat{}
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	session, _ := strconv.Atoi(string(fields[3]))
	return stat{state: fields[0][0], parent: parent, session: session}
}

// running is false for a zombie: dead already, only its parent can bury it.
func running(pid int) bool {
	state := readStat(pid).state
	return state != 0 && state != 'Z' && state != 'X'
}
