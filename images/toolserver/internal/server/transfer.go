package server

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"time"

	"rollcage.dev/toolserver/internal/archive"
	"rollcage.dev/toolserver/internal/token"
)

// reportTrailer follows a tree: what could not be sent is known only at its end.
const reportTrailer = "Rollcage-Report"

// Files moves bytes between requests and the file system.
type Files interface {
	OpenFile(path string) (*os.File, fs.FileInfo, error)
	PutFile(ctx context.Context, path string, content io.Reader) (int64, error)
	OpenTree(path string) (*archive.Tree, error)
	PutTree(ctx context.Context, path string, content io.Reader) (archive.Report, error)
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request, _ token.Claims) *refusal {
	path, done, refused := s.transfer(r)
	if refused != nil {
		return refused
	}
	defer done()
	file, info, err := s.options.Files.OpenFile(path)
	if err != nil {
		return refuseFile(err)
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.WriteHeader(http.StatusOK)
	if _, err := io.CopyN(w, file, info.Size()); err != nil {
		// The length is already promised; a cut connection says that it was not kept.
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (s *Server) getTree(w http.ResponseWriter, r *http.Request, _ token.Claims) *refusal {
	path, done, refused := s.transfer(r)
	if refused != nil {
		return refused
	}
	defer done()
	tree, err := s.options.Files.OpenTree(path)
	if err != nil {
		return refuseFile(err)
	}
	defer tree.Close()
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Trailer", reportTrailer)
	w.WriteHeader(http.StatusOK)
	report, err := tree.WriteTo(r.Context(), w)
	if err != nil {
		// Without the end of the chunks, nobody takes half a tree for a whole one.
		panic(http.ErrAbortHandler)
	}
	w.Header().Set(reportTrailer, fmt.Sprintf("entries=%d bytes=%d skipped=%d",
		report.Entries, report.Bytes, report.SkippedCount))
	return nil
}

func (s *Server) putFile(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	return s.upload(w, r, claims, func(ctx context.Context, path string, content io.Reader) (any, error) {
		written, err := s.options.Files.PutFile(ctx, path, content)
		return map[string]int64{"bytes": written}, err
	})
}

func (s *Server) putTree(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	return s.upload(w, r, claims, func(ctx context.Context, path string, content io.Reader) (any, error) {
		return s.options.Files.PutTree(ctx, path, content)
	})
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request, claims token.Claims,
	put func(context.Context, string, io.Reader) (any, error),
) *refusal {
	path, done, refused := s.transfer(r)
	if refused != nil {
		return refused
	}
	defer done()
	if refused := s.bind(claims); refused != nil {
		return refused
	}
	if refused := s.begins(); refused != nil {
		return refused
	}
	defer s.running.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.work, func() {
		cancel()
		// The past: whoever reads from a client that stalls reads no longer.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})()
	report, err := put(ctx, path, patientReader(ctx, w, r))
	switch {
	case err == nil:
		return writeValue(w, report)
	case s.work.Err() != nil:
		return refuse(context.Cause(s.work))
	}
	return refuseFile(err)
}

// begins counts an upload among what runs, unless nothing may begin any more.
func (s *Server) begins() *refusal {
	s.entry.RLock()
	defer s.entry.RUnlock()
	if s.open.Err() != nil {
		return refuse(context.Cause(s.open))
	}
	s.running.Add(1)
	return nil
}

// transfer checks what all of them need; done must be called at the end.
func (s *Server) transfer(r *http.Request) (path string, done func(), refused *refusal) {
	path = r.URL.Query().Get("path")
	switch {
	case path == "":
		return "", nil, badRequest("path is missing")
	case s.stopping():
		return "", nil, errStopping
	case !s.ready():
		return "", nil, errNotReady
	case !s.transfers.take(1):
		s.count.busy.Add(1)
		return "", nil, errBusy
	}
	return path, func() { s.transfers.give(1) }, nil
}
