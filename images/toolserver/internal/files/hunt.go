package files

import (
	"bytes"
	"context"
	"io"
	"sync"

	"rollcage.dev/toolserver/internal/disk"
)

// How much one search reads at most, over all files.
const searchMax = 8 << 30

// A line is searched as a whole up to this length, and in pieces beyond it:
// memory stays flat whatever a file holds.
const longestLine = 1 << 20

// finder looks for the pattern.
type finder struct {
	// at is where in a line the pattern is, or -1.
	at func(line []byte) int
	// possible is false only when none of many lines can match.
	possible func(lines []byte) bool
}

var searchBuffers = sync.Pool{New: func() any { return new([longestLine]byte) }}

// searchFile looks through one file. A NUL byte ends it: the rest is binary.
func (h *hunt) searchFile(ctx context.Context, path, shown string) {
	file, _, err := disk.Open(path)
	if err != nil {
		h.notes.note(shown, reason(err))
		return
	}
	defer file.Close()
	h.data.Files++
	buffer := searchBuffers.Get().(*[longestLine]byte)
	defer searchBuffers.Put(buffer)

	number, held := int64(1), 0
	for ctx.Err() == nil {
		n, err := file.Read(buffer[held:])
		h.scanned += int64(n)
		if bytes.IndexByte(buffer[held:held+n], 0) >= 0 {
			h.data.Binary++
			return
		}
		if h.scanned > searchMax {
			h.full = true
			return
		}
		held += n
		lines := buffer[:bytes.LastIndexByte(buffer[:held], '\n')+1]
		split := false
		if err != nil || len(lines) == 0 && held == len(buffer) {
			// The last line, or a piece of one that is too long.
			split = err == nil
			lines = buffer[:held]
		}
		var more bool
		if number, more = h.searchLines(shown, lines, number); !more {
			return
		}
		if split {
			h.pieces++
		}
		held = copy(buffer[:], buffer[len(lines):held])
		if err == io.EOF {
			return
		}
		if err != nil {
			h.notes.note(shown, reason(err))
			return
		}
	}
}

// searchLines looks through lines and returns the number of the next one; a
// last one without an end goes on in the next call.
func (h *hunt) searchLines(path string, lines []byte, number int64) (next int64, more bool) {
	// Most pieces of most files hold no match at all.
	if !h.find.possible(lines) {
		return number + int64(bytes.Count(lines, newline)), true
	}
	for len(lines) > 0 {
		end := bytes.IndexByte(lines, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(lines)
		}
		if at := h.find.at(bytes.TrimSuffix(lines[:end], newline)); at >= 0 && !h.add(path, number, lines[:end], at) {
			return number, false
		}
		if whole {
			number++
		}
		lines = lines[end:]
	}
	return number, true
}

var newline = []byte{'\n'}
