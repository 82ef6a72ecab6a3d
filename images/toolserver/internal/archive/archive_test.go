package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"rollcage.dev/toolserver/internal/disk"
)

// tarOf makes a stream; the content of an entry without one is its name.
func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, header := range headers {
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Typeflag == tar.TypeReg {
			header.Size = int64(len(header.Name))
		}
		if header.Mode == 0 {
			header.Mode = 0o644
		}
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			io.WriteString(w, header.Name)
		}
	}
	w.Close()
	return b.Bytes()
}

// place is a target directory with a secret beside it.
func place(t testing.TB) (above, target string) {
	above = t.TempDir()
	target = filepath.Join(above, "target")
	os.Mkdir(target, 0o755)
	os.WriteFile(filepath.Join(above, "secret"), []byte("secret"), 0o600)
	return above, target
}

// unharmed fails when anything beside the target has changed.
func unharmed(t testing.TB, above string) {
	t.Helper()
	names, _ := os.ReadDir(above)
	content, _ := os.ReadFile(filepath.Join(above, "secret"))
	info, _ := os.Lstat(filepath.Join(above, "secret"))
	if len(names) != 2 || string(content) != "secret" || info.Mode() != 0o600 {
		t.Fatalf("beside the target: %v, %q, %v", names, content, info.Mode())
	}
	if info.Sys().(*syscall.Stat_t).Nlink != 1 {
		t.Fatal("the secret has a second name")
	}
}

func put(target string, stream []byte) (Report, error) {
	return New(target).PutTree(context.Background(), ".", bytes.NewReader(stream))
}

func TestATreeSurvivesTheRoundTrip(t *testing.T) {
	from := t.TempDir()
	os.MkdirAll(filepath.Join(from, "a/closed"), 0o755)
	os.WriteFile(filepath.Join(from, "a/x"), []byte("content"), 0o751)
	os.WriteFile(filepath.Join(from, "a/closed/y"), []byte("y"), 0o444)
	os.WriteFile(filepath.Join(from, "odd \n\xff name"), nil, 0o644)
	os.WriteFile(filepath.Join(from, strings.Repeat("long", 60)), []byte("l"), 0o644)
	os.Symlink("/nowhere/at/all", filepath.Join(from, "link"))
	os.Link(filepath.Join(from, "a/x"), filepath.Join(from, "b"))
	os.Chmod(filepath.Join(from, "a/closed"), 0o555)
	defer os.Chmod(filepath.Join(from, "a/closed"), 0o755)
	syscall.Mkfifo(filepath.Join(from, "fifo"), 0o644)
	long := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	os.Chtimes(filepath.Join(from, "a/x"), long, long)

	tree, err := New("/").OpenTree(from)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	var stream, again bytes.Buffer
	report, err := tree.WriteTo(context.Background(), &stream)
	if err != nil || report.Entries != 8 || report.SkippedCount != 1 || report.Skipped[0] != "fifo: is a FIFO" {
		t.Fatalf("got %+v, %v", report, err)
	}
	to := filepath.Join(t.TempDir(), "made/on/the/way")
	if report, err := put(to, stream.Bytes()); err != nil || report.Entries != 8 {
		t.Fatalf("got %+v, %v", report, err)
	}
	defer os.Chmod(filepath.Join(to, "a/closed"), 0o755)
	back, _ := New(to).OpenTree(".")
	defer back.Close()
	back.WriteTo(context.Background(), &again)
	if !bytes.Equal(stream.Bytes(), again.Bytes()) {
		t.Error("the second archive differs from the first")
	}
}

func TestNothingIsWrittenOutside(t *testing.T) {
	symlink := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
	}
	cases := []struct {
		name    string
		entries []tar.Header
	}{
		{"a parent", []tar.Header{{Name: "../evil"}}},
		{"a parent further in", []tar.Header{{Name: "a/../../evil"}}},
		{"an absolute name", []tar.Header{{Name: "/tmp/rollcage-test-evil"}}},
		{"a link to the parent, then a file through it", []tar.Header{symlink("l", ".."), {Name: "l/evil"}}},
		{"a link to an absolute directory, then a file through it", []tar.Header{symlink("l", "/tmp"), {Name: "l/rollcage-test-evil"}}},
		{"a link to a link", []tar.Header{symlink("a", "b/.."), symlink("b", "../.."), {Name: "a/evil"}}},
		{"a directory through a link", []tar.Header{symlink("l", ".."), {Name: "l/evil/", Typeflag: tar.TypeDir}}},
		{"a hard link to a parent", []tar.Header{link("h", "../secret")}},
		{"a hard link through a link", []tar.Header{symlink("l", ".."), link("h", "l/secret")}},
		{"a hard link to an absolute name", []tar.Header{link("h", "/etc/passwd")}},
		{"a device", []tar.Header{{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}},
		{"a FIFO", []tar.Header{{Name: "p", Typeflag: tar.TypeFifo}}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			above, target := place(t)
			_, err := put(target, tarOf(t, test.entries...))
			var refused *Refused
			if !errors.As(err, &refused) {
				t.Errorf("got %v", err)
			}
			unharmed(t, above)
			if _, err := os.Lstat("/tmp/rollcage-test-evil"); err == nil {
				t.Error("it was written")
			}
		})
	}
}

func TestALinkIsReplacedNotFollowed(t *testing.T) {
	above, target := place(t)
	os.Symlink("../secret", filepath.Join(target, "f"))
	if _, err := put(target, tarOf(t, tar.Header{Name: "f"})); err != nil {
		t.Fatal(err)
	}
	unharmed(t, above)
	if content, _ := os.ReadFile(filepath.Join(target, "f")); string(content) != "f" {
		t.Errorf("got %q", content)
	}
}

func TestOddEntriesAreTaken(t *testing.T) {
	_, target := place(t)
	long := strings.Repeat("deep/", 300) + "leaf"
	stream := tarOf(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir},
		tar.Header{Name: "./a//b/./c"},
		tar.Header{Name: long},
		tar.Header{Name: "suid", Mode: 0o4755},
		tar.Header{Name: "suid", Mode: 0o4711},
		tar.Header{Name: "same", Typeflag: tar.TypeLink, Linkname: "suid"},
		tar.Header{Name: "same", Typeflag: tar.TypeLink, Linkname: "suid"},
	)
	if _, err := put(target, stream); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(target, "suid"))
	if err != nil || info.Mode() != 0o711 {
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(target, "a/b/c")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(target, long)); err != nil {
		t.Error(err)
	}
	names, _ := os.ReadDir(target)
	if len(names) != 4 {
		t.Errorf("got %v", names)
	}
}

func TestZerosBecomeHoles(t *testing.T) {
	_, target := place(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	const size = 64<<20 + 7
	w.WriteHeader(&tar.Header{Name: "sparse", Typeflag: tar.TypeReg, Size: size, Mode: 0o644})
	io.CopyN(w, zeros{}, size-3)
	io.WriteString(w, "end")
	w.Close()
	if _, err := put(target, b.Bytes()); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(filepath.Join(target, "sparse"))
	if info.Size() != size || info.Sys().(*syscall.Stat_t).Blocks > 1024 {
		t.Errorf("%d bytes in %d blocks", info.Size(), info.Sys().(*syscall.Stat_t).Blocks)
	}
}

func TestABrokenStreamIsAnErrorAndLeavesNoHalfFile(t *testing.T) {
	_, target := place(t)
	os.WriteFile(filepath.Join(target, "f"), []byte("old"), 0o644)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "f", Typeflag: tar.TypeReg, Size: 200_000, Mode: 0o644})
	w.Write(make([]byte, 100_000))
	if _, err := put(target, b.Bytes()); err == nil {
		t.Error("no error")
	}
	names, _ := os.ReadDir(target)
	if content, _ := os.ReadFile(filepath.Join(target, "f")); string(content) != "old" || len(names) != 1 {
		t.Errorf("got %q, %v", content, names)
	}
	if _, err := put(target, []byte(strings.Repeat("no tar", 1000))); err == nil {
		t.Error("no error")
	}
}

func TestAFailedUploadLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	a := New(dir)
	if n, err := a.PutFile(context.Background(), "d/f", strings.NewReader("old")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	broken := io.MultiReader(strings.NewReader("new"), iotest.ErrReader(errors.New("cut off")))
	if _, err := a.PutFile(context.Background(), "d/f", broken); err == nil || err.Error() != "cut off" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.PutFile(ctx, "d/f", strings.NewReader("new")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	names, _ := os.ReadDir(filepath.Join(dir, "d"))
	if content, _ := os.ReadFile(filepath.Join(dir, "d/f")); string(content) != "old" || len(names) != 1 {
		t.Errorf("got %q, %v", content, names)
	}
}

func TestDownloadsAreOfTheRightKind(t *testing.T) {
	dir := t.TempDir()
	a := New(dir)
	os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644)
	var refusal *disk.Refusal
	if _, _, err := a.OpenFile("."); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
	if _, err := a.OpenTree("f"); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
	if _, err := a.OpenTree("/proc"); !errors.As(err, &refusal) {
		t.Errorf("got %v", err)
	}
	if _, err := a.OpenTree("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	file, info, err := a.OpenFile("f")
	if err != nil || info.Size() != 1 {
		t.Fatal(err)
	}
	file.Close()
}

func FuzzExtractionStaysInside(f *testing.F) {
	f.Add("a\n../x\nl\x01..\nl/y")
	f.Add("l\x01/tmp\nl/rollcage-fuzz\nh\x02l/z\nd/\nd")
	f.Add("a\x01b\nb\x01a/..\na/b/c\nh\x02../secret")
	f.Fuzz(func(t *testing.T, script string) {
		above, target := place(t)
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for line := range strings.SplitSeq(script, "\n") {
			header := tar.Header{Name: line, Mode: 0o700, Typeflag: tar.TypeReg, Size: 1}
			if name, to, ok := strings.Cut(line, "\x01"); ok {
				header = tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
			} else if name, to, ok := strings.Cut(line, "\x02"); ok {
				header = tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink}
			} else if strings.HasSuffix(line, "/") {
				header.Typeflag, header.Size = tar.TypeDir, 0
			}
			if w.WriteHeader(&header) == nil && header.Size > 0 {
				w.Write([]byte{'x'})
			}
		}
		w.Close()
		put(target, b.Bytes())
		put(target, []byte(script))
		unharmed(t, above)
	})
}
