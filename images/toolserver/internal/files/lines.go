package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"rollcage.dev/toolserver/internal/truncate"
)

// How far a line is looked for. A sparse file of terabytes takes as long to
// scan as a real one.
const scanMax = 1 << 30

// A NUL byte this early makes a file binary, as it does for git and grep.
const binaryLook = 8 << 10

// window is what to show of a file.
type window struct {
	first    int64
	limit    int64
	numbered bool
	budget   int
}

// page is what a window showed.
type page struct {
	text string
	// last is the last line shown, zero when there was none.
	last int64
	// lines is how many lines were passed.
	lines   int64
	scanned int64
	// more says that the file goes on; cut, that it did not fit.
	more, cut, lineCut bool
	replaced           bool
	binary             bool
	gaveUp             bool
	err                error
}

// scanLines goes through the lines up to the end of the window.
func scanLines(ctx context.Context, file io.Reader, w window) page {
	reader := bufio.NewReaderSize(file, 64<<10)
	beginning, _ := reader.Peek(binaryLook)
	if bytes.IndexByte(beginning, 0) >= 0 {
		return page{binary: true}
	}
	p := page{}
	if !p.skip(ctx, reader, w.first-1) {
		return p
	}
	var text strings.Builder
	for w.limit == 0 || p.lines-(w.first-1) < w.limit {
		line, err := nextLine(reader, w.budget)
		if err != nil && err != io.EOF {
			p.err = err
			return p
		}
		if len(line) == 0 {
			p.text = text.String()
			return p
		}
		if bytes.IndexByte(line, 0) >= 0 {
			p.binary = true
			return p
		}
		if !p.show(&text, line, w) {
			break
		}
	}
	_, err := reader.Peek(1)
	p.more = p.more || err == nil
	p.text = text.String()
	return p
}

// skip passes n lines; false when it could not.
func (p *page) skip(ctx context.Context, reader *bufio.Reader, n int64) bool {
	for p.lines < n {
		piece, err := reader.ReadSlice('\n')
		p.scanned += int64(len(piece))
		if err == nil || err == io.EOF && len(piece) > 0 {
			p.lines++
		}
		if err == io.EOF {
			return false
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			p.err = err
			return false
		}
		if p.scanned > scanMax || ctx.Err() != nil {
			p.gaveUp = true
			return false
		}
	}
	return true
}

// nextLine returns a line with its end, or the beginning of one that is longer
// than most.
func nextLine(reader *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for len(line) <= most {
		piece, err := reader.ReadSlice('\n')
		line = append(line, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
	return line, nil
}

// show adds a line; false when the page is full.
func (p *page) show(text *strings.Builder, line []byte, w window) bool {
	number := ""
	if w.numbered {
		number = fmt.Sprintf("%6d\t", p.lines+1)
	}
	room := w.budget - text.Len() - len(number)
	valid := truncate.Valid(line)
	if len(valid) > room {
		p.cut, p.more = true, true
		if p.last > 0 {
			return false
		}
		valid = truncate.Valid(truncate.Prefix(line, room))
		p.lineCut = true
	}
	p.replaced = p.replaced || len(valid) != len(line) && !p.lineCut
	p.lines++
	p.last = p.lines
	text.WriteString(number)
	text.WriteString(valid)
	return !p.lineCut
}
