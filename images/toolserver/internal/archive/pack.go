package archive

import (
	"archive/tar"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/disk"
)

// Tree is a directory that is known to exist, ready for download.
type Tree struct{ root *os.Root }

// Close gives the directory back.
func (t *Tree) Close() error { return t.root.Close() }

// inode tells two names of one file from two files.
type inode struct{ device, number uint64 }

type packer struct {
	*Tree
	ctx    context.Context
	out    *tar.Writer
	report Report
	linked map[inode]string
}

// WriteTo streams the tree as tar, in order of names. What cannot be sent, or
// is neither file, directory nor link, is skipped and reported: half a stream
// would be worth nothing.
func (t *Tree) WriteTo(ctx context.Context, out io.Writer) (Report, error) {
	p := &packer{Tree: t, ctx: ctx, out: tar.NewWriter(out), linked: make(map[inode]string)}
	if err := p.directory("."); err != nil {
		return p.report, err
	}
	return p.report, p.out.Close()
}

func (t *Tree) notProc(name string) error {
	directory, err := t.root.Open(name)
	if err != nil {
		return err
	}
	defer directory.Close()
	return disk.NotProc(directory, directory.Name())
}

func (p *packer) directory(name string) error {
	entries, err := p.read(name)
	if err != nil {
		p.report.skip(name, reason(err))
	}
	for _, entry := range entries {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		if err := p.entry(path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) read(name string) ([]fs.DirEntry, error) {
	directory, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	if err := disk.NotProc(directory, name); err != nil {
		return nil, err
	}
	entries, err := directory.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// entry sends one name. Owners are left out: the tree belongs to whoever
// unpacks it.
func (p *packer) entry(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		p.report.skip(name, reason(err))
		return nil
	}
	header := &tar.Header{
		Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		header.Typeflag = tar.TypeDir
		header.Name += "/"
		if err := p.header(header); err != nil {
			return err
		}
		return p.directory(name)
	case fs.ModeSymlink:
		// Extracting cannot set a link's own time, so it says none.
		header.Typeflag, header.ModTime = tar.TypeSymlink, time.Time{}
		if header.Linkname, err = p.root.Readlink(name); err != nil {
			p.report.skip(name, reason(err))
			return nil
		}
		return p.header(header)
	case 0:
		return p.file(name, header)
	}
	p.report.skip(name, "is "+disk.Kind(info.Mode()))
	return nil
}

func (p *packer) header(header *tar.Header) error {
	p.report.Entries++
	return p.out.WriteHeader(header)
}

func (p *packer) file(name string, header *tar.Header) error {
	file, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		p.report.skip(name, reason(err))
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		p.report.skip(name, "is not a regular file any more")
		return nil
	}
	if err := disk.NotProc(file, name); err != nil {
		p.report.skip(name, reason(err))
		return nil
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		id := inode{uint64(stat.Dev), stat.Ino}
		if first, seen := p.linked[id]; seen {
			header.Typeflag, header.Linkname = tar.TypeLink, first
			return p.header(header)
		}
		p.linked[id] = name
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := p.header(header); err != nil {
		return err
	}
	return p.content(name, file, info.Size())
}

// content sends exactly as many bytes as the header promised, however the file
// changes meanwhile.
func (p *packer) content(name string, file io.Reader, size int64) error {
	sent, err := io.CopyN(p.out, &patient{p.ctx, file}, size)
	p.report.Bytes += sent
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	if sent == size {
		return nil
	}
	if err != nil && err != io.EOF && !readFailure(err) {
		return err
	}
	p.report.skip(name, "became shorter or unreadable while it was sent; the rest is zeros")
	_, err = io.CopyN(p.out, zeros{}, size-sent)
	return err
}

// readFailure tells the file's trouble from the receiver's.
func readFailure(err error) bool {
	path, ok := err.(*fs.PathError)
	return ok && path.Op == "read"
}

type zeros struct{}

func (zeros) Read(buffer []byte) (int, error) {
	clear(buffer)
	return len(buffer), nil
}
