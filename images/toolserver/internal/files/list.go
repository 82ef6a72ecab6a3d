package files

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
	"rollcage.dev/toolserver/internal/truncate"
)

const listDescription = "List a directory: type (f, d, l, or o for others), size in bytes and path of each entry, sorted by name. " +
	"Deeper levels only on request."

const listParameters = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "Directory, absolute or relative to the work directory, which is the default."},
    "depth": {"type": "integer", "minimum": 1, "maximum": 64, "description": "Levels to list; 1 by default."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 5000, "description": "Most entries to list; 1000 by default."}
  },
  "additionalProperties": false
}`

const listLimit = 1000

type listArguments struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
	Limit int    `json:"limit"`
}

// listed is one entry of the data of a list.
type listed struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Size   int64  `json:"size"`
	Target string `json:"target,omitempty"`
}

type listing struct {
	Entries  []listed `json:"entries"`
	Complete bool     `json:"complete"`
}

func list(ctx context.Context, base *launch.Base, args listArguments) tool.Result {
	args.Depth, args.Limit = max(args.Depth, 1), min(orElse(args.Limit, listLimit), 5000)
	top := base.Path(args.Path)
	info, err := os.Stat(top)
	if err != nil {
		return failure("list", top, err)
	}
	var text strings.Builder
	data := listing{Entries: []listed{}}
	add := func(one listed) bool {
		line := one.line()
		if len(data.Entries) >= args.Limit || text.Len()+len(line) > base.OutputBytes-noteRoom {
			return false
		}
		text.WriteString(line)
		data.Entries = append(data.Entries, one)
		return true
	}
	if !info.IsDir() {
		add(describe(filepath.Dir(top), filepath.Base(top)))
		data.Complete = true
		return tool.Result{Class: tool.OK, Output: text.String(), Data: data}
	}

	tree := walk{top: top}
	tree.visit = func(found entry) (enter, more bool) {
		return found.depth < args.Depth, add(describe(top, found.path))
	}
	data.Complete = tree.run(ctx)
	result := tool.Result{Class: tool.OK, Data: data}
	notes := tree.lines()
	switch {
	case ctx.Err() != nil:
		result.Class = tool.TimedOut
		notes = append(notes, "[the time limit ended the listing; list a smaller directory]")
	case !data.Complete:
		result.Facts.Truncated = true
		notes = append(notes, fmt.Sprintf("[only the first %d entries are shown; list a smaller directory or fewer levels]", len(data.Entries)))
	case len(data.Entries) == 0 && len(notes) == 0:
		notes = append(notes, "[the directory is empty]")
	}
	result.Output = withNotes(text.String(), notes)
	return result
}

// withNotes adds the lines that say what is missing. They are not held to the
// output's limit one by one, but together.
func withNotes(text string, notes []string) string {
	together := truncate.New(4 << 10)
	together.Write([]byte(strings.Join(notes, "\n")))
	return launch.Append(text, together.Text().String)
}

// describe looks at an entry; one that vanished meanwhile is an "o" of size 0.
func describe(top, path string) listed {
	one := listed{Path: path, Type: "o"}
	info, err := os.Lstat(filepath.Join(top, path))
	if err != nil {
		return one
	}
	switch info.Mode().Type() {
	case 0:
		one.Type, one.Size = "f", info.Size()
	case fs.ModeDir:
		one.Type = "d"
	case fs.ModeSymlink:
		one.Type = "l"
		one.Target, _ = os.Readlink(filepath.Join(top, path))
	}
	return one
}

func (l listed) line() string {
	size, suffix := "-", ""
	switch l.Type {
	case "f":
		size = fmt.Sprint(l.Size)
	case "d":
		suffix = "/"
	case "l":
		suffix = " -> " + printable(l.Target)
	}
	return fmt.Sprintf("%s %10s %s%s\n", l.Type, size, printable(l.Path), suffix)
}

func orElse(value, otherwise int) int {
	if value > 0 {
		return value
	}
	return otherwise
}
