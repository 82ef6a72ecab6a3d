// Package disk opens and replaces regular files: nothing here waits for a pipe
// or a device, and nobody ever sees half a file. Which file, and what is in it,
// belongs to others.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const procMagic = 0x9fa0

// Refusal is a file that is there but not for us to touch.
type Refusal struct {
	Path string
	Why  string
}

func (r *Refusal) Error() string { return r.Path + " " + r.Why }

// Open opens a regular file for reading. It is opened without blocking and
// looked at afterwards: what a path names can change between a look and an open.
func Open(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		// A socket cannot be opened at all, and says so in an odd way.
		if errors.Is(err, syscall.ENXIO) {
			return nil, nil, &Refusal{path, "is a socket or a device without a driver; only regular files can be read"}
		}
		return nil, nil, err
	}
	info, err := inspect(file, path)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func inspect(file *os.File, path string) (fs.FileInfo, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &Refusal{path, "is a directory"}
	}
	if !info.Mode().IsRegular() {
		return nil, &Refusal{path, fmt.Sprintf("is %s; only regular files can be read", Kind(info.Mode()))}
	}
	return info, NotProc(file, path)
}

// NotProc refuses procfs, where PID 1 could see what the model's own processes
// cannot. Its shell reads there with its own eyes.
func NotProc(file *os.File, path string) error {
	var system syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &system); err != nil {
		return &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	if system.Type == procMagic {
		return &Refusal{path, "is in /proc, which only the shell can read"}
	}
	return nil
}

// Kind names what is not a regular file.
func Kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return "a device"
	}
	return "not a regular file"
}
