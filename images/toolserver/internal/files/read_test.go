package files

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

func TestReadShowsLines(t *testing.T) {
	var hundred strings.Builder
	for i := range 100 {
		fmt.Fprintf(&hundred, "line %d\n", i+1)
	}
	cases := []struct {
		name, content string
		args          map[string]any
		want          string
	}{
		{"a whole file", "a\nb\n", nil, "a\nb\n"},
		{"a file without a last newline", "a\nb", nil, "a\nb"},
		{"an empty file", "", nil, "[the file is empty]"},
		{"a range", hundred.String(), map[string]any{"offset": 3, "limit": 2}, "line 3\nline 4\n[lines 3-4; continue with offset 5]"},
		{"the end of a file", hundred.String(), map[string]any{"offset": 100}, "line 100\n"},
		{"the last lines exactly", hundred.String(), map[string]any{"offset": 99, "limit": 2}, "line 99\nline 100\n"},
		{"numbered lines", "x\ny\n", map[string]any{"numbered": true}, "     1\tx\n     2\ty\n"},
		{"invalid UTF-8", "caf\xe9\n", nil, "caf\ufffd\n[invalid UTF-8 is shown as U+FFFD]"},
		{"base64", "\x00\x01\x02", map[string]any{"encoding": "base64"}, "AAEC"},
		{"a range of bytes", "abcdef", map[string]any{"encoding": "base64", "offset": 3, "limit": 2},
			base64.StdEncoding.EncodeToString([]byte("cd")) + "\n[bytes 3-4 of 6; continue with offset 5]"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.file("f", test.content)
			args := map[string]any{"path": "f"}
			for key, value := range test.args {
				args[key] = value
			}
			if result := b.call("read_file", args); result.Output != test.want || result.Class != tool.OK {
				t.Errorf("got %s: %q, want %q", result.Class, result.Output, test.want)
			}
		})
	}
}

func TestReadingOnWithTheOffsetGivenYieldsTheWholeFile(t *testing.T) {
	b := newBench(t)
	var content strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&content, "%d %s\n", i, strings.Repeat("é", i%40))
	}
	b.file("f", content.String())
	var got strings.Builder
	for offset := int64(1); offset > 0; {
		result := b.call("read_file", map[string]any{"path": "f", "offset": offset})
		text := result.Output
		offset = result.Data.(portion).Next
		if offset > 0 {
			text = text[:strings.LastIndex(text, "[lines")]
			if !result.Facts.Truncated {
				t.Fatal("not said to be truncated")
			}
		}
		got.WriteString(text)
	}
	if got.String() != content.String() {
		t.Error("the pieces are not the file")
	}
}

func TestReadRefusesWhatIsNotAFileAndNeverBlocks(t *testing.T) {
	b := newBench(t)
	if err := syscall.Mkfifo(b.path("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Symlink("/proc/self/environ", b.path("link"))
	b.file("binary", "ELF\x00\x01")
	b.file("long", strings.Repeat("x", 100_000))
	b.file("short", "a\nb\n")
	cases := []struct {
		name  string
		args  map[string]any
		class tool.Class
		part  string
	}{
		{"a FIFO", map[string]any{"path": "fifo"}, tool.Failed, "is a FIFO; only regular files"},
		{"a device", map[string]any{"path": "/dev/zero"}, tool.Failed, "is a device"},
		{"a directory", map[string]any{"path": "/"}, tool.Failed, "is a directory"},
		{"procfs", map[string]any{"path": "/proc/self/environ"}, tool.Failed, "is in /proc"},
		{"procfs through a link", map[string]any{"path": "link"}, tool.Failed, "is in /proc"},
		{"a missing file", map[string]any{"path": "no"}, tool.Failed, "no such file"},
		{"a binary file", map[string]any{"path": "binary"}, tool.Failed, "is binary (5 bytes); encoding base64"},
		{"a line past the end", map[string]any{"path": "short", "offset": 9}, tool.Failed, "has only 2 lines"},
		{"a byte past the end", map[string]any{"path": "short", "offset": 9, "encoding": "base64"}, tool.Failed, "has only 4 bytes"},
		{"a line that does not fit", map[string]any{"path": "long"}, tool.OK, "only its beginning is shown"},
		{"a path with a NUL", map[string]any{"path": "a\x00b"}, tool.Failed, "invalid argument"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			b.expect(b.call("read_file", test.args), test.class, test.part)
		})
	}
}

func TestReadOfAHugeSparseFileIsBounded(t *testing.T) {
	b := newBench(t)
	b.file("sparse", strings.Repeat("text\n", 4096))
	if err := os.Truncate(b.path("sparse"), 10<<40); err != nil {
		t.Skip(err)
	}
	began := time.Now()
	b.expect(b.call("read_file", map[string]any{"path": "sparse", "offset": 100_000}), tool.Failed, "gave up looking for line 100000")
	b.expect(b.call("read_file", map[string]any{"path": "sparse", "limit": 1}), tool.OK, "text\n[lines 1-1; continue with offset 2]")
	b.expect(b.call("search", map[string]any{"path": "sparse", "pattern": "none"}), tool.OK, "1 binary files were skipped")
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %v", took)
	}
}
