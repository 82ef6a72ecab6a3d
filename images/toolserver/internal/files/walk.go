package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"rollcage.dev/toolserver/internal/disk"
	"rollcage.dev/toolserver/internal/launch"
)

// A directory larger than this is shown in part: sorting it needs all of it in
// memory.
const directoryMax = 100_000

// Trouble beyond this is counted, not listed.
const notesMax = 10

// entry is one name that a walk came by.
type entry struct {
	// path begins at the top of the walk; depth counts from 1.
	path  string
	depth int
	kind  fs.FileMode
}

// walk visits a tree in order of names, directories before what is in them. It
// follows no links, and what it cannot enter becomes a note.
type walk struct {
	top   string
	notes []string
	extra int
	// visit says whether to go on, and into a directory whether to enter it.
	visit func(entry) (enter, more bool)
}

func (w *walk) note(path, why string) {
	if len(w.notes) >= notesMax {
		w.extra++
		return
	}
	w.notes = append(w.notes, "["+printable(path)+": "+why+"]")
}

// lines are the notes as the model sees them.
func (w *walk) lines() []string {
	if w.extra == 0 {
		return w.notes
	}
	return append(w.notes, fmt.Sprintf("[and %d more of these]", w.extra))
}

// run walks; false when visit or the context ended it.
func (w *walk) run(ctx context.Context) bool { return w.enter(ctx, "", 1) }

func (w *walk) enter(ctx context.Context, below string, depth int) bool {
	names, err := w.read(below)
	if err != nil {
		w.note(filepath.Join(w.top, below), reason(err))
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return false
		}
		found := entry{path: filepath.Join(below, name.Name()), depth: depth, kind: name.Type()}
		enter, more := w.visit(found)
		if !more {
			return false
		}
		if enter && found.kind.IsDir() && !w.enter(ctx, found.path, depth+1) {
			return false
		}
	}
	return true
}

// read returns a directory's entries, sorted, as far as it got.
func (w *walk) read(below string) ([]fs.DirEntry, error) {
	flags := os.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NONBLOCK
	if below != "" {
		// It was a directory a moment ago; a link in its place is not followed.
		flags |= syscall.O_NOFOLLOW
	}
	directory, err := os.OpenFile(filepath.Join(w.top, below), flags, 0)
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	if err := disk.NotProc(directory, directory.Name()); err != nil {
		return nil, err
	}
	entries, err := directory.ReadDir(directoryMax)
	if err == io.EOF {
		err = nil
	}
	if len(entries) == directoryMax {
		err = fmt.Errorf("only %d of its entries were looked at", directoryMax)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func reason(err error) string {
	var refusal *disk.Refusal
	if errors.As(err, &refusal) {
		return refusal.Why
	}
	return launch.Reason(err)
}

// printable is a path on one line; one that is not is quoted.
func printable(path string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) }
	if utf8.ValidString(path) && !strings.ContainsFunc(path, odd) {
		return path
	}
	return strconv.Quote(path)
}
