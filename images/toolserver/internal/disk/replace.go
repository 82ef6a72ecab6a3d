package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// As many links as the kernel itself would follow.
const maxLinks = 40

const accessWrite = 2

// Replace writes a file beside its place and then renames it: until then, and
// after any failure, the old one is as it was. Links are followed, missing
// directories made. A mode of zero keeps the old file's mode.
func Replace(path string, mode fs.FileMode, write func(io.Writer) error) error {
	target, err := follow(path)
	if err != nil {
		return err
	}
	old, err := replaceable(target)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(target), TemporaryName())
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		// Its directory is closed to us, but the file is not.
		if old != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
			return overwrite(target, mode, write)
		}
		return &fs.PathError{Op: "write", Path: target, Err: cause(err)}
	}
	defer os.Remove(temporary)
	err = write(file)
	if err == nil {
		err = dress(file, mode, old)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return named(err, temporary, target)
	}
	err = os.Rename(temporary, target)
	if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) {
		// The file is a mount of its own, as Kubernetes makes /etc/hosts.
		return copyOver(temporary, target, mode)
	}
	if err != nil {
		return &fs.PathError{Op: "write", Path: target, Err: cause(err)}
	}
	return nil
}

// TemporaryName is a name that nobody else uses.
func TemporaryName() string {
	var random [8]byte
	rand.Read(random[:])
	return ".rollcage-" + hex.EncodeToString(random[:])
}

// follow resolves links at the end of a path, also one that leads to nothing
// yet.
func follow(path string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			return path, nil
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(next) {
			// Not cleaned: ".." after a linked directory means its parent.
			next = filepath.Dir(path) + "/" + next
		}
		path = next
	}
	return "", &fs.PathError{Op: "write", Path: path, Err: syscall.ELOOP}
}

// replaceable returns the old file, nil when there is none.
func replaceable(target string) (fs.FileInfo, error) {
	old, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !old.Mode().IsRegular() {
		return nil, &Refusal{target, "is " + Kind(old.Mode()) + "; only regular files can be written"}
	}
	// A rename would not ask, but a file that is closed to us stays closed.
	if err := syscall.Access(target, accessWrite); err != nil {
		return nil, &fs.PathError{Op: "write", Path: target, Err: err}
	}
	return old, nil
}

// dress gives the new file the mode and owner of the old one.
func dress(file *os.File, mode fs.FileMode, old fs.FileInfo) error {
	if old != nil {
		if stat, ok := old.Sys().(*syscall.Stat_t); ok {
			// Only root can, and only root needs to.
			file.Chown(int(stat.Uid), int(stat.Gid))
		}
		if mode == 0 {
			mode = old.Mode().Perm()
		}
	}
	if mode == 0 {
		return nil
	}
	return file.Chmod(mode)
}

func overwrite(target string, mode fs.FileMode, write func(io.Writer) error) error {
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_TRUNC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil && mode != 0 {
		err = file.Chmod(mode)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

func copyOver(from, to string, mode fs.FileMode) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return overwrite(to, mode, func(w io.Writer) error {
		_, err := io.Copy(w, source)
		return err
	})
}

func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

// named tells of the file that was asked for, not of ours beside it.
func named(err error, temporary, target string) error {
	var path *fs.PathError
	if errors.As(err, &path) && path.Path == temporary {
		return &fs.PathError{Op: path.Op, Path: target, Err: path.Err}
	}
	return err
}
