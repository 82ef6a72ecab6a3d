package server

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"

	"rollcage.dev/toolserver/internal/journal"
	"rollcage.dev/toolserver/internal/token"
)

// refusal is an error as a caller sees it.
type refusal struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

var (
	errBusy     = &refusal{http.StatusServiceUnavailable, "busy", "as many calls are running and waiting as are allowed"}
	errNotReady = &refusal{http.StatusServiceUnavailable, "not_ready", "set-up has not succeeded"}
	errStopping = &refusal{http.StatusServiceUnavailable, "stopping", "this sandbox is being stopped"}
	errSealed   = &refusal{http.StatusGone, "sealed", "this sandbox is sealed: nothing in it changes any more"}
	errBound    = &refusal{http.StatusConflict, "bound_elsewhere", "this sandbox belongs to another rollout"}
	errBoot     = &refusal{http.StatusConflict, "restarted", "this sandbox has started anew since that boot id"}
	errTooLarge = &refusal{http.StatusRequestEntityTooLarge, "too_large", "a call is at most 4 MiB"}
	errNotFound = &refusal{http.StatusNotFound, "not_found", "there is nothing here"}
	errMethod   = &refusal{http.StatusMethodNotAllowed, "method_not_allowed", "this method is not for this path"}

	// The two errors whose call may have run. Their answers are journaled, so
	// that a repeat hears the same.
	errInternal    = &refusal{http.StatusInternalServerError, "internal", "the toolserver failed; the call may have run"}
	errInterrupted = &refusal{http.StatusInternalServerError, "interrupted", "the sandbox was stopped while the call ran"}
)

func badRequest(message string) *refusal {
	return &refusal{http.StatusBadRequest, "bad_request", message}
}

// refuse translates the errors of the inner packages, in this one place.
func refuse(err error) *refusal {
	var r *refusal
	var t *token.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &t):
		return &refusal{tokenStatus(t.Code), string(t.Code), t.Message}
	case errors.Is(err, journal.ErrConflict):
		return &refusal{http.StatusConflict, "call_conflict", err.Error()}
	case errors.Is(err, journal.ErrDropped):
		return &refusal{http.StatusGone, "result_dropped", err.Error()}
	case errors.Is(err, journal.ErrFull):
		return &refusal{http.StatusServiceUnavailable, "journal_full", err.Error()}
	case errors.Is(err, journal.ErrUnknown):
		return &refusal{http.StatusNotFound, "unknown_call", err.Error()}
	}
	return errInternal
}

// refuseFile words what the file system said. Whatever it is, the sandbox's
// own state is the reason: a full disk, a missing file, a closed door.
func refuseFile(err error) *refusal {
	if errors.Is(err, fs.ErrNotExist) {
		return &refusal{http.StatusNotFound, "not_found", err.Error()}
	}
	return &refusal{http.StatusUnprocessableEntity, "file_error", err.Error()}
}

func tokenStatus(code token.Code) int {
	if code == token.WrongAudience || code == token.WrongScope {
		return http.StatusForbidden
	}
	return http.StatusUnauthorized
}

func (r *refusal) body() []byte {
	body, _ := json.Marshal(r)
	return body
}
