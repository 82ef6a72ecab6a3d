package files

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"rollcage.dev/toolserver/internal/tool"
)

func TestListShowsATree(t *testing.T) {
	b := newBench(t)
	b.file("b/deep/er", "123")
	b.file("a.txt", "12345")
	b.file("odd\nname", "")
	os.Symlink("a.txt", b.path("link"))
	syscall.Mkfifo(b.path("pipe"), 0o644)
	want := "f          5 a.txt\n" +
		"d          - b/\n" +
		"d          - b/deep/\n" +
		"l          - link -> a.txt\n" +
		"f          0 \"odd\\nname\"\n" +
		"o          - pipe\n"
	if result := b.call("list", map[string]any{"depth": 2}); result.Output != want || result.Class != tool.OK {
		t.Errorf("got %q", result.Output)
	}
	b.expect(b.call("list", map[string]any{"path": "a.txt"}), tool.OK, "f          5 a.txt\n")
	b.expect(b.call("list", map[string]any{"limit": 2}), tool.OK, "b/\n[only the first 2 entries are shown")
	b.expect(b.call("list", map[string]any{"path": "none"}), tool.Failed, "no such file")
	b.expect(b.call("list", map[string]any{"path": "/proc"}), tool.OK, "is in /proc, which only the shell can read")
	os.Mkdir(b.path("empty"), 0o755)
	b.expect(b.call("list", map[string]any{"path": "empty"}), tool.OK, "[the directory is empty]")
}

func TestListFitsItsOutput(t *testing.T) {
	b := newBench(t)
	for i := range 1500 {
		b.file(fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 40)), "")
	}
	result := b.call("list", map[string]any{"limit": 5000})
	b.expect(result, tool.OK, "entries are shown")
	if !result.Facts.Truncated || result.Data.(listing).Complete {
		t.Error("not said to be incomplete")
	}
}

func TestSearchFindsLines(t *testing.T) {
	cases := []struct {
		name string
		args map[string]any
		want string
	}{
		{"a text", map[string]any{"pattern": "needle("}, "src/a.go:2:\tneedle()\n"},
		{"a text without a match", map[string]any{"pattern": "nothing"}, "[no match in 4 files]\n[1 binary files were skipped]"},
		{"ignoring case", map[string]any{"pattern": "NEEDLE(", "ignore_case": true, "include": []string{"*.go"}}, "src/a.go:2:\tneedle()\n"},
		{"an anchored expression", map[string]any{"pattern": "^func .*{$", "regex": true, "include": []string{"src/**"}}, "src/a.go:1:func a() {\n"},
		{"an expression for the whole line", map[string]any{"pattern": `\A}\z`, "regex": true, "include": []string{"src/**"}}, "src/a.go:3:}\n"},
		{"one file", map[string]any{"pattern": "doc", "path": "doc/x.md"}, "doc/x.md:1:a doc about a needle\n"},
		{"one directory", map[string]any{"pattern": "e", "path": "doc"}, "doc/x.md:1:a doc about a needle\n"},
		{"without a directory", map[string]any{"pattern": "needle", "exclude": []string{"src", "*.bin"}}, "doc/x.md:1:a doc about a needle\n"},
		{"with braces", map[string]any{"pattern": "needle", "include": []string{"*.{md,rst}"}}, "doc/x.md:1:a doc about a needle\n"},
		{"the last line without an end", map[string]any{"pattern": "last", "include": []string{"plain"}}, "plain:3:the last\n"},
	}
	b := newBench(t)
	b.file("src/a.go", "func a() {\n\tneedle()\n}\n")
	b.file("doc/x.md", "a doc about a needle\n")
	b.file("plain", "one\n\nthe last")
	b.file("x.bin", "needle\x00needle(")
	syscall.Mkfifo(b.path("fifo"), 0o644)
	os.Symlink("src", b.path("link"))
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			got := b.call("search", test.args)
			want := strings.TrimSuffix(got.Output, "[1 binary files were skipped]")
			if strings.Contains(test.want, "binary") {
				want = got.Output
			}
			if want != test.want || got.Class != tool.OK {
				t.Errorf("got %s: %q, want %q", got.Class, got.Output, test.want)
			}
		})
	}
}

func TestSearchIsBoundedAndSaysSo(t *testing.T) {
	b := newBench(t)
	b.file("many", strings.Repeat("match\n", 100_000))
	b.file("wide", strings.Repeat("é", 700_000)+"needle"+strings.Repeat("y", 2<<20)+"\nneedle again\n")
	b.expect(b.call("search", map[string]any{"pattern": "match"}), tool.OK, "many:200:match\n[only the first 200 matches")
	b.expect(b.call("search", map[string]any{"pattern": "match", "limit": 2000}), tool.OK, "matches are shown; narrow")
	b.expect(b.call("search", map[string]any{"pattern": "needle"}), tool.OK,
		"wide:1:[... ", "needleyyy", " bytes ...]\nwide:2:needle again\n", "searched in pieces")
	b.expect(b.call("search", map[string]any{"pattern": "(", "regex": true}), tool.Malformed, "not an RE2 expression")
	b.expect(b.call("search", map[string]any{"pattern": "x", "include": []string{"[a"}}), tool.Malformed, "include: [ without ]")
}

func TestGlobsMatchPaths(t *testing.T) {
	cases := []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true},
		{"*.go", "x/y/a.go", true},
		{"*.go", "a.go/x", false},
		{"src/*.go", "src/a.go", true},
		{"src/*.go", "src/x/a.go", false},
		{"src/*.go", "lib/src/a.go", false},
		{"src/**/*.go", "src/a.go", true},
		{"src/**/*.go", "src/x/y/a.go", true},
		{"**/test/**", "a/test/b", true},
		{"/a", "a", true},
		{"/a", "b/a", false},
		{"./a/b", "a/b", true},
		{"dir/", "dir/x/y", true},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{"[a-c]x", "bx", true},
		{"[!a-c]x", "bx", false},
		{"[]]x", "]x", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{"{a,b{c,d}}", "bd", true},
		{"a,b", "a,b", true},
		{"é*", "été", true},
	}
	for _, test := range cases {
		compiled, err := newGlob(test.pattern)
		if err != nil || compiled.MatchString(test.path) != test.want {
			t.Errorf("%s on %s: %v, %v", test.pattern, test.path, !test.want, err)
		}
	}
}

// slowMatch is the meaning of *, ? and ** by trying everything.
func slowMatch(pattern, path string) bool {
	switch {
	case pattern == "":
		return path == ""
	case strings.HasPrefix(pattern, "**/"):
		if slowMatch(pattern[3:], path) {
			return true
		}
		for i := range len(path) {
			if path[i] == '/' && slowMatch(pattern[3:], path[i+1:]) {
				return true
			}
		}
		return false
	case strings.HasPrefix(pattern, "**"):
		for i := range len(path) + 1 {
			if slowMatch(pattern[2:], path[i:]) {
				return true
			}
		}
		return false
	case pattern[0] == '*':
		for i := 0; i <= len(path); i++ {
			if slowMatch(pattern[1:], path[i:]) {
				return true
			}
			if i < len(path) && path[i] == '/' {
				return false
			}
		}
		return false
	case path == "":
		return false
	case pattern[0] == '?' && path[0] != '/' || pattern[0] == path[0]:
		return slowMatch(pattern[1:], path[1:])
	}
	return false
}

func FuzzGlobsAgreeWithTryingEverything(f *testing.F) {
	f.Add("a/**/b*", "a/x/bc")
	f.Add("**/*?/x", "y/z/x")
	f.Add("***a", "ba")
	f.Add("[x", "{")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		compiled, err := newGlob(pattern)
		if err != nil {
			return
		}
		got := compiled.MatchString(path)
		plain := func(text string) bool {
			return len(text) <= 12 && !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune("ab*?/", r) })
		}
		if !plain(pattern) || !plain(path) || !strings.Contains(strings.Trim(pattern, "/"), "/") || strings.HasSuffix(pattern, "/") {
			return
		}
		if want := slowMatch(strings.TrimPrefix(pattern, "/"), path); got != want {
			t.Errorf("%q on %q: got %v", pattern, path, got)
		}
	})
}
