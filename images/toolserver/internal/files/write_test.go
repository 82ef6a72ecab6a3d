package files

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rollcage.dev/toolserver/internal/tool"
)

func TestWriteReplacesAFile(t *testing.T) {
	b := newBench(t)
	b.expect(b.call("write_file", map[string]any{"path": "a/b/c", "content": "new"}), tool.OK, "wrote 3 bytes to "+b.path("a/b/c"))
	os.Chmod(b.path("a/b/c"), 0o751)
	b.call("write_file", map[string]any{"path": "a/b/c", "content": "newer"})
	content, _ := os.ReadFile(b.path("a/b/c"))
	info, _ := os.Stat(b.path("a/b/c"))
	if string(content) != "newer" || info.Mode().Perm() != 0o751 {
		t.Errorf("got %q with mode %v", content, info.Mode())
	}
	b.call("write_file", map[string]any{"path": "a/b/c", "content": "AAEC", "encoding": "base64", "mode": "0600"})
	content, _ = os.ReadFile(b.path("a/b/c"))
	info, _ = os.Stat(b.path("a/b/c"))
	if string(content) != "\x00\x01\x02" || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q with mode %v", content, info.Mode())
	}
	if left, _ := filepath.Glob(b.path("a/b/.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFollowsLinks(t *testing.T) {
	b := newBench(t)
	b.file("real", "old")
	os.Symlink("real", b.path("link"))
	os.Symlink("not/yet/there", b.path("dangling"))
	os.Symlink("loop", b.path("loop"))
	b.call("write_file", map[string]any{"path": "link", "content": "new"})
	b.call("write_file", map[string]any{"path": "dangling", "content": "made"})
	real, _ := os.ReadFile(b.path("real"))
	made, _ := os.ReadFile(b.path("not/yet/there"))
	if string(real) != "new" || string(made) != "made" {
		t.Errorf("got %q and %q", real, made)
	}
	b.expect(b.call("write_file", map[string]any{"path": "loop", "content": ""}), tool.Failed, "too many levels of symbolic links")
}

func TestWriteRefusesWithAReason(t *testing.T) {
	b := newBench(t)
	syscall.Mkfifo(b.path("fifo"), 0o644)
	b.file("file", "")
	cases := []struct {
		name  string
		args  map[string]any
		class tool.Class
		part  string
	}{
		{"a directory", map[string]any{"path": ".", "content": ""}, tool.Failed, "is a directory; only regular files"},
		{"a FIFO", map[string]any{"path": "fifo", "content": ""}, tool.Failed, "is a FIFO"},
		{"below a file", map[string]any{"path": "file/x", "content": ""}, tool.Failed, "not a directory"},
		{"bad base64", map[string]any{"path": "x", "content": "!", "encoding": "base64"}, tool.Malformed, "not base64"},
		{"a bad mode", map[string]any{"path": "x", "content": "", "mode": "9"}, tool.Malformed, "octal"},
		{"a full disk", map[string]any{"path": "/dev/full", "content": "x"}, tool.Failed, "is a device"},
		{"a name too long", map[string]any{"path": strings.Repeat("n", 300), "content": "x"}, tool.Failed, "file name too long"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			b.expect(b.call("write_file", test.args), test.class, test.part)
		})
	}
}

func TestAFileInAClosedDirectoryIsWrittenInPlace(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("no directory is closed to root")
	}
	b := newBench(t)
	b.file("d/open", "old content")
	b.file("d/closed", "old")
	os.Chmod(b.path("d/closed"), 0o444)
	os.Chmod(b.path("d"), 0o555)
	defer os.Chmod(b.path("d"), 0o755)
	b.expect(b.call("write_file", map[string]any{"path": "d/open", "content": "new"}), tool.OK, "wrote 3 bytes")
	b.expect(b.call("write_file", map[string]any{"path": "d/closed", "content": "new"}), tool.Failed, "permission denied")
	b.expect(b.call("write_file", map[string]any{"path": "d/other", "content": "new"}), tool.Failed, "permission denied")
	if content, _ := os.ReadFile(b.path("d/open")); string(content) != "new" {
		t.Errorf("got %q", content)
	}
}
