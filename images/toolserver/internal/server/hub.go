package server

import "sync"

const (
	// watcherBytes is what a slow client may fall behind before it misses something.
	watcherBytes = 256 << 10
	// pieceBytes keeps events small enough to be written one by one.
	pieceBytes = 32 << 10
	// eventBytes is what an event costs besides its data; output of single
	// bytes on changing streams must not cost more than it may.
	eventBytes = 128
)

// event is output of a stream, or a gap where output was dropped.
type event struct {
	stream string
	data   []byte
	gap    int64
}

// hub hands a call's output to whoever watches. It never waits for them: the
// command must run at its own pace.
type hub struct {
	mu       sync.Mutex
	watchers map[*watcher]struct{}
	emitted  int64
}

// watcher is one client's view of a call's output.
type watcher struct {
	hub    *hub
	wake   chan struct{}
	events []event
	bytes  int
}

// publish copies the chunk, which belongs to the tool.
func (h *hub) publish(stream string, chunk []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.emitted += int64(len(chunk))
	for w := range h.watchers {
		w.add(stream, chunk)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// watch begins with a gap if there was output before.
func (h *hub) watch() *watcher {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &watcher{hub: h, wake: make(chan struct{}, 1)}
	if h.emitted > 0 {
		w.events = []event{{gap: h.emitted}}
		w.wake <- struct{}{}
	}
	h.watchers[w] = struct{}{}
	return w
}

func (w *watcher) close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	delete(w.hub.watchers, w)
}

// take returns what has come since the last time.
func (w *watcher) take() []event {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	events := w.events
	w.events, w.bytes = nil, 0
	return events
}

func (w *watcher) add(stream string, chunk []byte) {
	for len(chunk) > 0 {
		piece := chunk[:min(len(chunk), pieceBytes)]
		chunk = chunk[len(piece):]
		var last *event
		if len(w.events) > 0 {
			last = &w.events[len(w.events)-1]
		}
		switch {
		case w.bytes+len(piece)+eventBytes > watcherBytes:
			if last == nil || last.gap == 0 {
				w.events = append(w.events, event{})
				last = &w.events[len(w.events)-1]
			}
			last.gap += int64(len(piece))
		case last != nil && last.gap == 0 && last.stream == stream && len(last.data)+len(piece) <= pieceBytes:
			last.data = append(last.data, piece...)
			w.bytes += len(piece)
		default:
			w.events = append(w.events, event{stream: stream, data: append([]byte(nil), piece...)})
			w.bytes += len(piece) + eventBytes
		}
	}
}

// hubs are the hubs of the calls that run or wait.
type hubs struct {
	mu   sync.Mutex
	byID map[string]*hub
}

func (h *hubs) open(id string) *hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byID == nil {
		h.byID = map[string]*hub{}
	}
	opened := &hub{watchers: map[*watcher]struct{}{}}
	h.byID[id] = opened
	return opened
}

// find returns nil for a call that is over.
func (h *hubs) find(id string) *hub {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byID[id]
}

func (h *hubs) close(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byID, id)
}
