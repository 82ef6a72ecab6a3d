// Package truncate cuts output to a size a model can be shown: the head and
// the tail, by bytes, whatever the length of the whole and in constant memory.
// The result depends on the bytes alone, not on how they arrived.
package truncate

import (
	"fmt"
	"unicode/utf8"
)

// Least is the smallest limit that leaves room for the line about what was
// left out and some text around it.
const Least = 256

// Room for the line that says what was left out, with two 19-digit numbers.
const noteSize = 80

// Text is a cut output.
type Text struct {
	String    string
	Truncated bool
	// Total is the number of bytes before the cut.
	Total int64
}

// Cut takes bytes and keeps the beginning and the end of them. The zero value
// is not usable; it is not safe for concurrent use.
type Cut struct {
	limit int
	total int64
	// head holds the first limit bytes: all of them, if there are no more.
	head []byte
	// tail is a ring of the bytes after head, made when there are any.
	tail []byte
	next int
}

// New makes a Cut whose text is never longer than limit bytes.
func New(limit int) *Cut { return &Cut{limit: max(limit, Least)} }

func (c *Cut) budgets() (head, tail int) {
	room := c.limit - noteSize
	return room - room/2, room / 2
}

// Write takes bytes; it never fails.
func (c *Cut) Write(chunk []byte) {
	c.total += int64(len(chunk))
	if room := c.limit - len(c.head); room > 0 {
		taken := min(room, len(chunk))
		c.head = append(c.head, chunk[:taken]...)
		chunk = chunk[taken:]
	}
	if len(chunk) == 0 {
		return
	}
	if c.tail == nil {
		// The extra bytes tell whether the tail begins inside a sequence.
		_, budget := c.budgets()
		c.tail = make([]byte, budget+utf8.UTFMax)
	}
	if len(chunk) > len(c.tail) {
		chunk = chunk[len(chunk)-len(c.tail):]
	}
	copied := copy(c.tail[c.next:], chunk)
	copy(c.tail, chunk[copied:])
	c.next = (c.next + len(chunk)) % len(c.tail)
}

// Total is the number of bytes written.
func (c *Cut) Total() int64 { return c.total }

// Text is the cut output. Invalid bytes become U+FFFD, one for each; that makes
// them longer, and the limit holds for the text after it.
func (c *Cut) Text() Text {
	if c.total <= int64(c.limit) {
		if size := validSize(c.head); size <= c.limit {
			return Text{String: valid(c.head, size), Total: c.total}
		}
	}
	headBudget, tailBudget := c.budgets()
	head := prefix(c.head, headBudget)
	tail := suffix(c.last(tailBudget+utf8.UTFMax), tailBudget)
	omitted := c.total - int64(len(head)) - int64(len(tail))
	note := fmt.Sprintf("\n[... %d of %d bytes left out ...]\n", omitted, c.total)
	return Text{
		String:    valid(head, validSize(head)) + note + valid(tail, validSize(tail)),
		Truncated: true,
		Total:     c.total,
	}
}

// last returns the last n bytes written, or all when there are fewer.
func (c *Cut) last(n int) []byte {
	after := int(min(c.total-int64(len(c.head)), int64(len(c.tail))))
	n = min(n, len(c.head)+after)
	result := make([]byte, 0, n)
	if n > after {
		result = append(result, c.head[len(c.head)-(n-after):]...)
	}
	if after == 0 {
		return result
	}
	fromRing := min(n, after)
	start := (c.next - fromRing + len(c.tail)) % len(c.tail)
	if start+fromRing <= len(c.tail) {
		return append(result, c.tail[start:start+fromRing]...)
	}
	result = append(result, c.tail[start:]...)
	return append(result, c.tail[:fromRing-(len(c.tail)-start)]...)
}
