// Package kubetest is an API server that knows lists and watches only, and whose
// news can be held back: for tests of what a real one does seldom.
package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"rollcage.dev/kind-node/node-network/kube"
)

// Server is the server.
type Server struct {
	mu      sync.Mutex
	version int
	now     map[string]map[string]json.RawMessage
	events  map[string][]event
	held    map[string]bool
	// Watches that begin before this are too late.
	oldest int
	news   chan struct{}
	lists  map[string]int
}

type event struct {
	version int
	text    string
}

// New starts one, and returns a client of it.
func New(t *testing.T) (*Server, *kube.Client) {
	t.Helper()
	s := &Server{
		now:    map[string]map[string]json.RawMessage{},
		events: map[string][]event{},
		held:   map[string]bool{},
		news:   make(chan struct{}),
		lists:  map[string]int{},
	}
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	t.Cleanup(served.CloseClientConnections)
	return s, kube.New(served.URL, served.Client(), func() (string, error) { return "token", nil })
}

// Put makes or changes an object.
func (s *Server) Put(path, name, object string) {
	s.tell(path, name, object, "MODIFIED")
}

// Remove removes one.
func (s *Server) Remove(path, name string) {
	s.mu.Lock()
	last := string(s.now[path][name])
	s.mu.Unlock()
	s.tell(path, name, last, "DELETED")
}

func (s *Server) tell(path, name, object, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	var fields map[string]any
	if err := json.Unmarshal([]byte(object), &fields); err != nil {
		panic(err)
	}
	fields["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	text, _ := json.Marshal(fields)
	if s.now[path] == nil {
		s.now[path] = map[string]json.RawMessage{}
	}
	s.now[path][name] = text
	if what == "DELETED" {
		delete(s.now[path], name)
	}
	s.events[path] = append(s.events[path], event{s.version, fmt.Sprintf(`{"type": %q, "object": %s}`, what, text)})
	s.wake()
}

// Hold keeps what happens to one kind of objects from those who watch it, or tells it at last.
func (s *Server) Hold(path string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[path] = held
	s.wake()
}

// Expire makes everything that has happened too old for a watch.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.oldest = s.version
	s.wake()
}

// Listed returns how often a list was asked for.
func (s *Server) Listed(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[path]
}

func (s *Server) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[r.URL.Path]++
	items := []json.RawMessage{}
	for _, one := range s.now[r.URL.Path] {
		items = append(items, one)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(s.version)}, "items": items,
	})
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for {
		s.mu.Lock()
		news, late := s.news, version < s.oldest
		var due []event
		for _, one := range s.events[r.URL.Path] {
			if one.version > version && !s.held[r.URL.Path] {
				due = append(due, one)
			}
		}
		s.mu.Unlock()
		if late {
			fmt.Fprintln(w, `{"type": "ERROR", "object": {"code": 410, "message": "too old"}}`)
			return
		}
		for _, one := range due {
			fmt.Fprintln(w, one.text)
			version = one.version
		}
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}
