package server

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rollcage.dev/toolserver/internal/archive"
	"rollcage.dev/toolserver/internal/tool"
)

func startWithFiles(t *testing.T) (h *harness, dir string) {
	t.Helper()
	dir = t.TempDir()
	return start(t, Options{Tools: []tool.Tool{echo}, Files: archive.New(dir)}), dir
}

func TestAFileGoesInAndComesOut(t *testing.T) {
	h, _ := startWithFiles(t)
	content := strings.Repeat("0123456789abcdef", 100_000)
	if got := h.send(t, "PUT", "/v1/files?path=a%20b.txt", content); got.body != `{"bytes":1600000}` {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	got := h.send(t, "GET", "/v1/files?path=a%20b.txt", "")
	if got.status != 200 || got.body != content || got.header.Get("Content-Length") != "1600000" {
		t.Fatalf("got %d, %d bytes, %v", got.status, len(got.body), got.header)
	}
}

func TestAnUploadBindsAndADownloadDoesNot(t *testing.T) {
	h, _ := startWithFiles(t)
	expect(t, h.send(t, "GET", "/v1/files?path=none", ""), 404, "not_found")
	expect(t, h.send(t, "GET", "/v1/tree?path=none", ""), 404, "not_found")
	if h.fence.Bound() != nil {
		t.Fatal("a download has bound the sandbox")
	}
	h.send(t, "PUT", "/v1/files?path=x", "x")
	if bound := h.fence.Bound(); bound == nil || *bound != "r1" {
		t.Fatal("an upload has not bound the sandbox")
	}
}

func TestATreeGoesInAndComesOut(t *testing.T) {
	h, _ := startWithFiles(t)
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	writer.WriteHeader(&tar.Header{Name: "sub/a.txt", Mode: 0o644, Size: 5, Typeflag: tar.TypeReg})
	io.WriteString(writer, "hello")
	writer.Close()

	if got := h.send(t, "PUT", "/v1/tree?path=work", packed.String()); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	response, err := http.DefaultClient.Do(h.request(t, "GET", "/v1/tree?path=work", ""))
	if err != nil {
		t.Fatal(err)
	}
	body := read(t, response).body
	if got := response.Trailer.Get(reportTrailer); !strings.HasSuffix(got, "bytes=5 skipped=0") {
		t.Fatalf("got %q", got)
	}
	reader := tar.NewReader(strings.NewReader(body))
	for {
		entry, err := reader.Next()
		if err != nil {
			t.Fatalf("sub/a.txt is missing: %v", err)
		}
		if filepath.Clean(entry.Name) == "sub/a.txt" {
			break
		}
	}
	if content, _ := io.ReadAll(reader); string(content) != "hello" {
		t.Fatalf("got %q", content)
	}
}

func TestWhatTheFileSystemRefusesIsNoFaultOfOurs(t *testing.T) {
	h, dir := startWithFiles(t)
	os.Mkdir(filepath.Join(dir, "dir"), 0o755)
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o644)
	cases := []struct{ name, method, path, body string }{
		{"reading a directory as a file", "GET", "/v1/files?path=dir", ""},
		{"reading a file as a tree", "GET", "/v1/tree?path=file", ""},
		{"writing a file where a directory is", "PUT", "/v1/files?path=dir", "x"},
		{"writing below a file", "PUT", "/v1/files?path=file/x", "x"},
		{"a tree that is no archive", "PUT", "/v1/tree?path=new", "nonsense, and long enough: " + strings.Repeat("x", 600)},
		{"a device that never ends", "GET", "/v1/files?path=/dev/zero", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			expect(t, h.send(t, c.method, c.path, c.body), 422, "file_error")
		})
	}
	expect(t, h.send(t, "GET", "/v1/files", ""), 400, "bad_request")
}

func TestAnUploadThatBreaksOffChangesNothing(t *testing.T) {
	h, dir := startWithFiles(t)
	path := filepath.Join(dir, "file")
	os.WriteFile(path, []byte("old"), 0o644)
	ctx, leave := context.WithCancel(context.Background())
	from, to := io.Pipe()
	request := h.request(t, "PUT", "/v1/files?path=file", "").WithContext(ctx)
	request.Body, request.ContentLength = from, -1
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	io.WriteString(to, strings.Repeat("new", 10_000))
	leave()
	to.CloseWithError(io.ErrUnexpectedEOF)
	<-gone
	h.web.CloseClientConnections()
	h.web.Close() // waits for the handler

	if content, _ := os.ReadFile(path); string(content) != "old" {
		t.Fatalf("the file has %d bytes", len(content))
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
}

func TestTransfersAreBounded(t *testing.T) {
	h, _ := startWithFiles(t)
	for range maxTransfers {
		h.transfers.take(1)
	}
	expect(t, h.send(t, "GET", "/v1/files?path=x", ""), 503, "busy")
}
