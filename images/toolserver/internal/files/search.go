package files

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
	"rollcage.dev/toolserver/internal/truncate"
)

const searchDescription = "Search files for a text or a regular expression (RE2 syntax), line by line; answers path:line:text. " +
	"Globs know *, ?, [a-z], {a,b} and ** across directories; one without a slash is matched against file names. Binary files are skipped."

const searchParameters = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "What to look for, taken literally unless regex is true."},
    "path": {"type": "string", "minLength": 1, "description": "File or directory, absolute or relative to the work directory, which is the default."},
    "regex": {"type": "boolean", "description": "Whether pattern is a regular expression."},
    "ignore_case": {"type": "boolean", "description": "Whether to ignore case."},
    "include": {"type": "array", "items": {"type": "string"}, "description": "Only files that match one of these globs."},
    "exclude": {"type": "array", "items": {"type": "string"}, "description": "No files or directories that match one of these globs."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "description": "Most matching lines to return; 200 by default."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

const (
	searchLimit = 200
	// Of a long line this much is shown, around the match.
	lineShown  = 400
	lineBefore = 100
)

type searchArguments struct {
	Pattern    string   `json:"pattern"`
	Path       string   `json:"path"`
	Regex      bool     `json:"regex"`
	IgnoreCase bool     `json:"ignore_case"`
	Include    []string `json:"include"`
	Exclude    []string `json:"exclude"`
	Limit      int      `json:"limit"`
}

type match struct {
	Path string `json:"path"`
	Line int64  `json:"line"`
	Text string `json:"text"`
}

type matches struct {
	Matches  []match `json:"matches"`
	Files    int     `json:"files"`
	Binary   int     `json:"binary"`
	Complete bool    `json:"complete"`
}

// hunt is a search at work.
type hunt struct {
	find             finder
	include, exclude globs
	limit, budget    int

	text    strings.Builder
	data    matches
	scanned int64
	pieces  int
	notes   *walk
	full    bool
}

func search(ctx context.Context, base *launch.Base, args searchArguments) tool.Result {
	find, err := newFinder(args)
	if err != nil {
		return malformed(err.Error())
	}
	h := &hunt{find: find, limit: min(orElse(args.Limit, searchLimit), 2000), budget: base.OutputBytes - noteRoom}
	h.data.Matches = []match{}
	if h.include, err = newGlobs(args.Include); err != nil {
		return malformed("include: " + err.Error())
	}
	if h.exclude, err = newGlobs(args.Exclude); err != nil {
		return malformed("exclude: " + err.Error())
	}
	top := base.Path(args.Path)
	info, err := os.Stat(top)
	if err != nil {
		return failure("search", top, err)
	}
	tree := &walk{top: top}
	h.notes = tree
	if info.IsDir() {
		tree.visit = func(found entry) (enter, more bool) {
			if h.exclude.match(found.path) {
				return false, true
			}
			if found.kind.IsRegular() && (len(h.include) == 0 || h.include.match(found.path)) {
				h.searchFile(ctx, filepath.Join(top, found.path), filepath.Join(args.Path, found.path))
			}
			return true, !h.full
		}
		h.data.Complete = tree.run(ctx)
	} else {
		h.searchFile(ctx, top, args.Path)
		h.data.Complete = !h.full
	}
	return h.result(ctx)
}

// newFinder prepares the pattern; a text is looked for as bytes, which is much
// faster than any expression.
func newFinder(args searchArguments) (finder, error) {
	if !args.Regex && !args.IgnoreCase {
		text := []byte(args.Pattern)
		return finder{
			at:       func(line []byte) int { return bytes.Index(line, text) },
			possible: func(lines []byte) bool { return bytes.Contains(lines, text) },
		}, nil
	}
	expression := args.Pattern
	if !args.Regex {
		expression = regexp.QuoteMeta(expression)
	}
	flags := "(?m)"
	if args.IgnoreCase {
		flags = "(?im)"
	}
	compiled, err := regexp.Compile(flags + expression)
	if err != nil {
		return finder{}, fmt.Errorf("pattern is not an RE2 expression: %w", err)
	}
	find := finder{at: func(line []byte) int {
		if at := compiled.FindIndex(line); at != nil {
			return at[0]
		}
		return -1
	}}
	find.possible = compiled.Match
	if args.Regex && ownAnchors().MatchString(expression) {
		find.possible = func([]byte) bool { return true }
	}
	return find, nil
}

// ownAnchors are the ways to say "beginning or end of the text", which many
// lines at once are not.
var ownAnchors = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\\[Az]|\(\?[a-zA-Z]*-`)
})

// add keeps one match; false when there is no room for it.
func (h *hunt) add(path string, number int64, line []byte, at int) bool {
	found := match{Path: path, Line: number, Text: excerpt(line, at)}
	text := fmt.Sprintf("%s:%d:%s\n", printable(path), number, found.Text)
	if len(h.data.Matches) >= h.limit || h.text.Len()+len(text) > h.budget {
		h.full = true
		return false
	}
	h.text.WriteString(text)
	h.data.Matches = append(h.data.Matches, found)
	return true
}

// excerpt is a line, or the part of a long one that the match is in.
func excerpt(line []byte, at int) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) <= lineShown {
		return truncate.Valid(line)
	}
	start := max(0, min(at-lineBefore, len(line)-lineShown))
	// Not in the middle of a character.
	for start > 0 && start < len(line) && line[start]&0xc0 == 0x80 {
		start--
	}
	part := truncate.Prefix(line[start:], lineShown)
	text := truncate.Valid(part)
	if start > 0 {
		text = fmt.Sprintf("[... %d bytes] ", start) + text
	}
	if after := len(line) - start - len(part); after > 0 {
		text += fmt.Sprintf(" [%d bytes ...]", after)
	}
	return text
}

func (h *hunt) result(ctx context.Context) tool.Result {
	notes := h.notes.lines()
	result := tool.Result{Class: tool.OK}
	switch {
	case ctx.Err() != nil:
		result.Class = tool.TimedOut
		h.data.Complete = false
		notes = append(notes, fmt.Sprintf("[the time limit ended the search after %d files; narrow path or include]", h.data.Files))
	case h.scanned > searchMax:
		h.data.Complete = false
		notes = append(notes, fmt.Sprintf("[stopped after %d bytes in %d files; narrow path or include]", h.scanned, h.data.Files))
	case h.full:
		notes = append(notes, fmt.Sprintf("[only the first %d matches are shown; narrow pattern, path or include]", len(h.data.Matches)))
	case len(h.data.Matches) == 0:
		notes = append(notes, fmt.Sprintf("[no match in %d files]", h.data.Files))
	}
	if h.data.Binary > 0 {
		notes = append(notes, fmt.Sprintf("[%d binary files were skipped]", h.data.Binary))
	}
	if h.pieces > 0 {
		notes = append(notes, fmt.Sprintf("[%d lines longer than %d bytes were searched in pieces]", h.pieces, longestLine))
	}
	result.Facts.Truncated = !h.data.Complete
	result.Output = withNotes(h.text.String(), notes)
	result.Data = h.data
	return result
}
