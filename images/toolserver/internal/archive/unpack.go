package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/disk"
)

// A hole is kept as one when it is at least this long.
const holeSize = 64 << 10

// unpacker extracts below a root that the kernel keeps it in: a path that leads
// out through "..", a link or a link to a link is an error of the open itself,
// not of a check before it.
type unpacker struct {
	root   *os.Root
	report Report
	// directories get their modes and times at the end: a closed one could
	// not be filled.
	directories []*tar.Header
}

func unpack(root *os.Root, content io.Reader) (Report, error) {
	u := &unpacker{root: root}
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return u.report, u.finish()
		}
		if err != nil {
			return u.report, streamError(err)
		}
		if err := u.entry(header, reader); err != nil {
			return u.report, err
		}
	}
}

func streamError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Refused{Entry: "(header)", Why: "the stream is not a whole tar archive: " + err.Error()}
	}
	return err
}

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name, err := localName(header.Name)
	if err != nil {
		return err
	}
	header.Name = name
	if name == "." {
		// The directory itself: its mode is not the stream's to change.
		return nil
	}
	if err := u.place(header, content); err != nil {
		return explain(header.Name, err)
	}
	u.report.Entries++
	return nil
}

func (u *unpacker) place(header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return u.directory(header)
	}
	if err := u.parent(header.Name); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(header, content)
	case tar.TypeSymlink:
		// It may point anywhere; nothing here will follow it out.
		return u.replace(header.Name, func(temporary string) error { return u.root.Symlink(header.Linkname, temporary) })
	case tar.TypeLink:
		target, err := localName(header.Linkname)
		if err != nil {
			return err
		}
		return u.replace(header.Name, func(temporary string) error { return u.root.Link(target, temporary) })
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return &Refused{header.Name, "devices and FIFOs are not extracted"}
	}
	return &Refused{header.Name, "its type is not known"}
}

// localName is a name below the root, without detours.
func localName(name string) (string, error) {
	if strings.Contains(name, "\x00") {
		return "", &Refused{strings.ToValidUTF8(name, "?"), "its name holds a NUL byte"}
	}
	clean := path.Clean(name)
	if name == "" || !filepath.IsLocal(clean) {
		return "", &Refused{name, "its name leads out of the directory"}
	}
	return clean, nil
}

func (u *unpacker) parent(name string) error {
	if above := path.Dir(name); above != "." {
		return u.root.MkdirAll(above, 0o755)
	}
	return nil
}

func (u *unpacker) directory(header *tar.Header) error {
	if err := u.root.MkdirAll(header.Name, 0o755); err != nil {
		return err
	}
	u.directories = append(u.directories, header)
	return nil
}

// replace makes something beside its place and renames it.
func (u *unpacker) replace(name string, make func(temporary string) error) error {
	temporary := path.Join(path.Dir(name), disk.TemporaryName())
	if err := make(temporary); err != nil {
		return err
	}
	if err := u.root.Rename(temporary, name); err != nil {
		u.root.Remove(temporary)
		return err
	}
	// Renaming a hard link onto another one of the same file does nothing.
	u.root.Remove(temporary)
	return nil
}

func (u *unpacker) file(header *tar.Header, content io.Reader) error {
	return u.replace(header.Name, func(temporary string) error {
		file, err := u.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = u.fill(file, content)
		if err == nil {
			err = file.Chmod(mode(header))
		}
		if closed := file.Close(); err == nil {
			err = closed
		}
		if err == nil {
			err = u.root.Chtimes(temporary, time.Time{}, header.ModTime)
		}
		if err != nil {
			u.root.Remove(temporary)
		}
		return err
	})
}

// fill writes the content and leaves holes where it is nothing but zeros: a
// sparse file of terabytes must not fill the disk.
func (u *unpacker) fill(file *os.File, content io.Reader) error {
	buffer := make([]byte, holeSize)
	size := int64(0)
	for {
		n, err := io.ReadFull(content, buffer)
		if n == holeSize && zero(buffer) {
			if _, err := file.Seek(holeSize, io.SeekCurrent); err != nil {
				return err
			}
		} else if _, err := file.Write(buffer[:n]); err != nil {
			return err
		}
		size += int64(n)
		u.report.Bytes += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF && complete(content) {
			return file.Truncate(size)
		}
		if err != nil {
			return streamError(err)
		}
	}
}

// complete tells a last, shorter piece from a stream that broke off: at the end
// of an entry a tar reader says so again and again.
func complete(content io.Reader) bool {
	n, err := content.Read(make([]byte, 1))
	return n == 0 && err == io.EOF
}

var allZeros [holeSize]byte

func zero(buffer []byte) bool { return bytes.Equal(buffer, allZeros[:len(buffer)]) }

// mode leaves out what would give a program another user's rights.
func mode(header *tar.Header) fs.FileMode { return fs.FileMode(header.Mode).Perm() }

// finish closes the directories, inner ones first.
func (u *unpacker) finish() error {
	for _, header := range slices.Backward(u.directories) {
		info, err := u.root.Lstat(header.Name)
		if err != nil || !info.IsDir() {
			continue // A later entry took its place.
		}
		if err := u.root.Chtimes(header.Name, time.Time{}, header.ModTime); err != nil {
			return explain(header.Name, err)
		}
		if err := u.root.Chmod(header.Name, mode(header)); err != nil {
			return explain(header.Name, err)
		}
	}
	return nil
}

// explain names the entry, and keeps what a caller can act upon.
func explain(name string, err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &fs.PathError{Op: "extract", Path: name, Err: syscall.ENOSPC}
	}
	var path *fs.PathError
	var link *os.LinkError
	if errors.As(err, &path) || errors.As(err, &link) {
		return &Refused{name, err.Error()}
	}
	return err
}
