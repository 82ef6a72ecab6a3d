// Package journal remembers every call and its answer, so that a call runs at
// most once whatever is retried. It decides whether a call is new; running it
// is the server's business.
package journal

import (
	"errors"
	"sync"
)

var (
	// ErrConflict: the call id stands for another tool or other arguments.
	ErrConflict = errors.New("this call id was used with another tool or other arguments")
	// ErrDropped: the call ran, its answer no longer fits into memory.
	ErrDropped = errors.New("the call was made and its result has been dropped")
	// ErrFull: no more calls can be remembered, or may be made, so none may run.
	ErrFull = errors.New("this sandbox has taken as many calls as it may")
	// ErrUnknown: no such call was made.
	ErrUnknown = errors.New("no call of that id")
)

// Limits bound the journal's memory.
type Limits struct {
	Calls int
	Bytes int
}

// Outcome is an answer as it was first sent. Body is never changed.
type Outcome struct {
	Status int
	Body   []byte
}

// Call is one journal entry.
type Call struct {
	id          string
	fingerprint Fingerprint
	done        chan struct{}

	// Guarded by the journal's mutex; set before done is closed.
	outcome   Outcome
	dropped   bool
	withdrawn error
}

// Done is closed once the call has an answer, or never will have one.
func (c *Call) Done() <-chan struct{} { return c.done }

// Journal is safe for use by many goroutines.
type Journal struct {
	limits Limits

	mu       sync.Mutex
	calls    map[string]*Call
	finished []*Call // oldest first; those whose answers are kept
	bytes    int
}

// New returns an empty journal.
func New(limits Limits) *Journal {
	return &Journal{limits: limits, calls: map[string]*Call{}}
}

// Begin enters a call, or finds it. fresh says that the caller must run it and
// then Finish it (or Withdraw it, if it never started). A new call is entered
// only if it is not more than the most'th. admit is asked only about a new
// call, under the journal's lock: what it refuses leaves no trace, and what it
// queues is queued in the order of entry.
func (j *Journal) Begin(id string, fp Fingerprint, most int, admit func() error) (call *Call, fresh bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if call := j.calls[id]; call != nil {
		if call.fingerprint != fp {
			return nil, false, ErrConflict
		}
		if call.dropped {
			return nil, false, ErrDropped
		}
		return call, false, nil
	}
	if len(j.calls) >= min(j.limits.Calls, most) {
		return nil, false, ErrFull
	}
	if err := admit(); err != nil {
		return nil, false, err
	}
	call = &Call{id: id, fingerprint: fp, done: make(chan struct{})}
	j.calls[id] = call
	return call, true, nil
}

// Lookup finds a call made earlier.
func (j *Journal) Lookup(id string) (*Call, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	call := j.calls[id]
	switch {
	case call == nil:
		return nil, ErrUnknown
	case call.dropped:
		return nil, ErrDropped
	}
	return call, nil
}

// Finish records the answer and wakes everyone who waits for it.
func (j *Journal) Finish(call *Call, outcome Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	call.outcome = outcome
	j.finished = append(j.finished, call)
	j.bytes += len(outcome.Body)
	for j.bytes > j.limits.Bytes {
		oldest := j.finished[0]
		j.finished[0] = nil
		j.finished = j.finished[1:]
		j.bytes -= len(oldest.outcome.Body)
		oldest.outcome = Outcome{}
		oldest.dropped = true
	}
	close(call.done)
}

// Withdraw removes a call that never started. Whoever waits for it learns why.
func (j *Journal) Withdraw(call *Call, reason error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.calls, call.id)
	call.withdrawn = reason
	close(call.done)
}

// Outcome returns the answer of a call that is Done.
func (j *Journal) Outcome(call *Call) (Outcome, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case call.withdrawn != nil:
		return Outcome{}, call.withdrawn
	case call.dropped:
		return Outcome{}, ErrDropped
	}
	return call.outcome, nil
}

// Size returns the number of calls and the bytes of the answers kept.
func (j *Journal) Size() (calls, bytes int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.calls), j.bytes
}
