package truncate

import (
	"strings"
	"unicode/utf8"
)

const replacement = len(string(utf8.RuneError))

// Where a valid sequence lies does not depend on what is around it (a lead byte
// is never the middle of another one), so head and tail can be looked at alone.

// unit returns how many bytes the first character takes, and how many it will
// take once an invalid byte is replaced.
func unit(text []byte) (size, shown int) {
	if text[0] < utf8.RuneSelf {
		return 1, 1
	}
	char, size := utf8.DecodeRune(text)
	if char == utf8.RuneError && size == 1 {
		return 1, replacement
	}
	return size, size
}

func lastUnit(text []byte) (size, shown int) {
	char, size := utf8.DecodeLastRune(text)
	if char == utf8.RuneError && size == 1 {
		return 1, replacement
	}
	return size, size
}

// prefix is the longest beginning that takes at most budget bytes once valid.
func prefix(text []byte, budget int) []byte {
	end := 0
	for end < len(text) {
		size, shown := unit(text[end:])
		if shown > budget {
			break
		}
		budget -= shown
		end += size
	}
	return text[:end]
}

// suffix is the longest end that takes at most budget bytes once valid. What
// precedes it in text tells a whole sequence from the rest of one.
func suffix(text []byte, budget int) []byte {
	start := len(text)
	for start > 0 {
		size, shown := lastUnit(text[:start])
		if shown > budget {
			break
		}
		budget -= shown
		start -= size
	}
	return text[start:]
}

func validSize(text []byte) int {
	total := 0
	for len(text) > 0 {
		size, shown := unit(text)
		total += shown
		text = text[size:]
	}
	return total
}

// valid returns the text with every invalid byte replaced; size is its length.
func valid(text []byte, size int) string {
	if size == len(text) {
		return string(text)
	}
	var b strings.Builder
	b.Grow(size)
	for len(text) > 0 {
		n, shown := unit(text)
		if n == shown {
			b.Write(text[:n])
		} else {
			b.WriteRune(utf8.RuneError)
		}
		text = text[n:]
	}
	return b.String()
}

// Valid replaces every invalid byte with U+FFFD.
func Valid(text []byte) string { return valid(text, validSize(text)) }

// Prefix is the longest beginning of text that takes at most budget bytes once
// it is valid, and ends on a whole character.
func Prefix(text []byte, budget int) []byte { return prefix(text, budget) }
