package files

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"

	"rollcage.dev/toolserver/internal/disk"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

const readDescription = "Read a text file, whole or a range of lines. What does not fit is left out, and the last line says where to continue. " +
	"Binary files can be read as base64, where offset and limit count bytes."

const readParameters = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "File, absolute or relative to the work directory."},
    "offset": {"type": "integer", "minimum": 1, "description": "First line to read, from 1; with base64 the first byte, from 1."},
    "limit": {"type": "integer", "minimum": 1, "description": "Number of lines to read; with base64 of bytes."},
    "numbered": {"type": "boolean", "description": "Put its number before each line."},
    "encoding": {"type": "string", "enum": ["text", "base64"], "description": "How the content is returned; text by default."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

type readArguments struct {
	Path     string `json:"path"`
	Offset   int64  `json:"offset"`
	Limit    int64  `json:"limit"`
	Numbered bool   `json:"numbered"`
	Encoding string `json:"encoding"`
}

// portion is the data of a read: what was shown, and where to go on.
type portion struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// First and Last are lines, or bytes with base64; zero when there are none.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Next is the offset to continue with; zero at the end of the file.
	Next int64 `json:"next,omitempty"`
}

func read(ctx context.Context, base *launch.Base, args readArguments) tool.Result {
	path := base.Path(args.Path)
	file, info, err := disk.Open(path)
	if err != nil {
		return failure("read", path, err)
	}
	defer file.Close()
	args.Offset = max(args.Offset, 1)
	shown := portion{Path: path, Size: info.Size()}
	if args.Encoding == "base64" {
		return readBytes(file, shown, args, base.OutputBytes-noteRoom)
	}
	return readText(ctx, file, shown, args, base.OutputBytes-noteRoom)
}

// readBytes needs no scan: it goes straight to the place.
func readBytes(file *os.File, shown portion, args readArguments, budget int) tool.Result {
	want := int64(base64.StdEncoding.DecodedLen(budget) - 3)
	if args.Limit > 0 {
		want = min(want, args.Limit)
	}
	content := make([]byte, want)
	n, err := file.ReadAt(content, args.Offset-1)
	if err != nil && err != io.EOF {
		return failure("read", shown.Path, err)
	}
	if n == 0 && args.Offset > 1 {
		return failed(fmt.Sprintf("%s has only %d bytes", shown.Path, shown.Size))
	}
	result := tool.Result{Class: tool.OK, Output: base64.StdEncoding.EncodeToString(content[:n])}
	if n > 0 {
		shown.First, shown.Last = args.Offset, args.Offset+int64(n)-1
	}
	if shown.Last < shown.Size && n > 0 {
		shown.Next = shown.Last + 1
		result.Facts.Truncated = args.Limit == 0 || args.Limit > want
		result.Output += fmt.Sprintf("\n[bytes %d-%d of %d; continue with offset %d]", shown.First, shown.Last, shown.Size, shown.Next)
	}
	result.Data = shown
	return result
}

func readText(ctx context.Context, file io.Reader, shown portion, args readArguments, budget int) tool.Result {
	page := scanLines(ctx, file, window{first: args.Offset, limit: args.Limit, numbered: args.Numbered, budget: budget})
	switch {
	case page.err != nil:
		return failure("read", shown.Path, page.err)
	case page.binary:
		return failed(fmt.Sprintf("%s is binary (%d bytes); encoding base64 returns its bytes, or use the shell", shown.Path, shown.Size))
	case page.gaveUp:
		return failed(fmt.Sprintf("%s: gave up looking for line %d after %d bytes; use the shell", shown.Path, args.Offset, page.scanned))
	case page.last == 0 && args.Offset > 1:
		return failed(fmt.Sprintf("%s has only %d lines", shown.Path, page.lines))
	case page.last == 0:
		return tool.Result{Class: tool.OK, Output: "[the file is empty]", Data: shown}
	}
	shown.First, shown.Last = args.Offset, page.last
	result := tool.Result{Class: tool.OK}
	result.Facts.Truncated = page.cut
	var notes []string
	if page.lineCut {
		notes = append(notes, fmt.Sprintf("line %d is longer than fits, only its beginning is shown", page.last))
	}
	if page.replaced {
		notes = append(notes, "invalid UTF-8 is shown as U+FFFD")
	}
	if page.more {
		shown.Next = page.last + 1
		notes = append(notes, fmt.Sprintf("lines %d-%d; continue with offset %d", shown.First, shown.Last, shown.Next))
	}
	result.Output = page.text
	if len(notes) > 0 {
		result.Output = launch.Append(page.text, "["+strings.Join(notes, "; ")+"]")
	}
	result.Data = shown
	return result
}
