// Package archive moves files and trees in and out of the sandbox as streams,
// for callers who are not the model. It holds no more than a buffer in memory
// and has no size limit but the disk. HTTP belongs to the server.
package archive

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"rollcage.dev/toolserver/internal/disk"
)

// Archive resolves relative paths against the work directory.
type Archive struct{ workdir string }

// New makes an archive whose relative paths begin at workdir.
func New(workdir string) *Archive { return &Archive{workdir: workdir} }

// Report says what a tree transfer came to.
type Report struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
	// Skipped names what could not be sent; SkippedCount counts also those
	// that are too many to name.
	Skipped      []string `json:"skipped,omitempty"`
	SkippedCount int      `json:"skipped_count,omitempty"`
}

// Names beyond these are only counted.
const skippedMax = 100

func (r *Report) skip(path, why string) {
	r.SkippedCount++
	if len(r.Skipped) < skippedMax {
		r.Skipped = append(r.Skipped, path+": "+why)
	}
}

func (a *Archive) path(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.workdir, path)
}

// OpenFile opens one regular file for download, without blocking on anything
// that is not one. The caller closes it and reads no more than info.Size().
func (a *Archive) OpenFile(path string) (file *os.File, info fs.FileInfo, err error) {
	return disk.Open(a.path(path))
}

// PutFile stores a stream as one file. The old file stays as it was until the
// new one is complete.
func (a *Archive) PutFile(ctx context.Context, path string, content io.Reader) (written int64, err error) {
	err = disk.Replace(a.path(path), 0, func(w io.Writer) error {
		var err error
		written, err = io.Copy(w, &patient{ctx, content})
		return err
	})
	return written, err
}

// OpenTree opens a directory for download, so that a missing one is known
// before the first byte is sent. The caller closes it.
func (a *Archive) OpenTree(path string) (*Tree, error) {
	path = a.path(path)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &disk.Refusal{Path: path, Why: "is not a directory"}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	tree := &Tree{root: root}
	if err := tree.notProc("."); err != nil {
		root.Close()
		return nil, err
	}
	return tree, nil
}

// PutTree extracts a tar stream below a directory, which is made when missing.
// Nothing is ever written outside of it, whatever the stream holds. An entry
// that cannot be ends it; what came before stays.
func (a *Archive) PutTree(ctx context.Context, path string, content io.Reader) (Report, error) {
	path = a.path(path)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return Report{}, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return Report{}, err
	}
	defer root.Close()
	return unpack(root, &patient{ctx, content})
}

// patient reads until the context is done.
type patient struct {
	ctx    context.Context
	reader io.Reader
}

func (p *patient) Read(buffer []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.reader.Read(buffer)
}

// Refused is a stream that holds what must not, or cannot, be extracted.
type Refused struct {
	Entry string
	Why   string
}

func (r *Refused) Error() string { return "tar entry " + r.Entry + ": " + r.Why }

// reason is the plain cause of a file system's error.
func reason(err error) string {
	var refusal *disk.Refusal
	if errors.As(err, &refusal) {
		return refusal.Why
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
