package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// trim gives back the memory that starting has used and serving does not
// need: there are many sandboxes on a node. Of the heap that is what is free,
// of the program itself everything; what is still needed comes back from the
// page cache, a little at a time.
func trim() {
	debug.FreeOSMemory()
	path, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if start, size, ok := readOnlyPart(line, path); ok {
			syscall.RawSyscall(syscall.SYS_MADVISE, start, size, syscall.MADV_DONTNEED)
		}
	}
}

// readOnlyPart finds where a part of the program lies that was never written
// to, so that nothing is lost with it: "start-end r-xp offset device inode path".
func readOnlyPart(line, path string) (start, size uintptr, ok bool) {
	fields := strings.Fields(line)
	if len(fields) != 6 || fields[5] != path || strings.Contains(fields[1], "w") {
		return 0, 0, false
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	last, err := strconv.ParseUint(to, 16, 64)
	if err != nil || last <= first {
		return 0, 0, false
	}
	return uintptr(first), uintptr(last - first), true
}
