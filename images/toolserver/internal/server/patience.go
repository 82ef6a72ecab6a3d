package server

import (
	"context"
	"io"
	"net/http"
	"time"
)

// patience is how long a client may make no progress at all. Deadlines move
// with progress, so that a large transfer may take its time and a stalled one
// may not.
const patience = 30 * time.Second

// writePiece is how much must get through within one patience.
const writePiece = 64 << 10

// patientWriter renews the write deadline before each piece.
type patientWriter struct{ http.ResponseWriter }

// Unwrap is how http.ResponseController finds the connection.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) Write(data []byte) (written int, err error) {
	control := http.NewResponseController(w.ResponseWriter)
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), writePiece)]
		// Connections without deadlines exist only in tests.
		_ = control.SetWriteDeadline(time.Now().Add(patience))
		n, err := w.ResponseWriter.Write(piece)
		written += n
		if err != nil {
			return written, err
		}
		data = data[len(piece):]
	}
	return written, nil
}

// FlushError writes too, and therefore needs a deadline too.
func (w *patientWriter) FlushError() error {
	control := http.NewResponseController(w.ResponseWriter)
	_ = control.SetWriteDeadline(time.Now().Add(patience))
	return control.Flush()
}

// patientReader reads a request's body and renews the read deadline before
// each read. Whoever ends ctx and then makes the deadline pass ends the reading
// too, also of a client that says nothing.
func patientReader(ctx context.Context, w http.ResponseWriter, r *http.Request) io.Reader {
	return &bodyReader{ctx: ctx, body: r.Body, control: http.NewResponseController(w)}
}

type bodyReader struct {
	ctx     context.Context
	body    io.Reader
	control *http.ResponseController
}

func (b *bodyReader) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(patience))
	// In this order: a deadline that passed before the line above is undone by it.
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.body.Read(p)
	// A deadline left behind would later look like a client that went away.
	_ = b.control.SetReadDeadline(time.Time{})
	return n, err
}
