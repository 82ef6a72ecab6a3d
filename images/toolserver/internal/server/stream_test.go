package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

// sse is one server-sent event; a comment has no name.
type sse struct{ name, data string }

func readEvent(t *testing.T, from *bufio.Reader) sse {
	t.Helper()
	var e sse
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			return e
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data = line[6:]
		}
	}
}

func (h *harness) stream(t *testing.T, id, tool string) (*http.Response, *bufio.Reader) {
	t.Helper()
	response, err := http.DefaultClient.Do(h.request(t, "POST", "/v1/calls/stream", callBody(id, tool, `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response, bufio.NewReader(response.Body)
}

// talker emits what it is given and ends when there is no more.
func talker(lines <-chan string) fake {
	return fake{"talk", "", func(_ context.Context, call tool.Call) tool.Result {
		for line := range lines {
			call.Emit("stdout", []byte(line))
		}
		return ok("said everything")
	}}
}

func TestAStreamShowsOutputAndEndsWithTheJournaledResult(t *testing.T) {
	lines := make(chan string)
	h := start(t, Options{Tools: []tool.Tool{talker(lines)}})
	response, events := h.stream(t, "c1", "talk")
	if response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %v", response.Header)
	}
	lines <- "hello\n"
	if got := readEvent(t, events); got != (sse{"output", `{"stream":"stdout","text":"hello\n"}`}) {
		t.Fatalf("got %+v", got)
	}
	lines <- "\xff\x00"
	if got := readEvent(t, events); got != (sse{"output", `{"stream":"stdout","base64":"/wA="}`}) {
		t.Fatalf("got %+v", got)
	}
	close(lines)
	got := readEvent(t, events)
	repeat := h.call(t, "c1", "talk", `{}`)
	if got.name != "result" || got.data != repeat.body {
		t.Fatalf("got %+v, want %s", got, repeat.body)
	}
}

func TestALateWatcherLearnsWhatItMissed(t *testing.T) {
	lines := make(chan string)
	h := start(t, Options{Tools: []tool.Tool{talker(lines)}})
	answered := h.background(t, "c1", "talk", `{}`)
	lines <- "12345"
	lines <- "" // the talker is back for more, so the first line is out
	response, events := h.stream(t, "c1", "talk")
	if got := readEvent(t, events); got != (sse{"gap", `{"bytes":5}`}) {
		t.Fatalf("got %+v", got)
	}
	if response.Header.Get(replayedHeader) != "true" {
		t.Fatal("not marked as a repeat")
	}
	close(lines)
	if got := readEvent(t, events); got.data != (<-answered).body {
		t.Fatalf("got %+v", got)
	}
}

func TestAStreamOfAFinishedCallIsItsResult(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	first := h.call(t, "c1", "echo", `{}`)
	_, events := h.stream(t, "c1", "echo")
	if got := readEvent(t, events); got != (sse{"result", first.body}) {
		t.Fatalf("got %+v", got)
	}
}

func TestAStreamOfACallThatIsInterruptedEndsWithAnError(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	_, events := h.stream(t, "c1", "wait")
	<-b.started
	h.Stop(context.Background(), func() {})
	var refused refusal
	got := readEvent(t, events)
	if err := json.Unmarshal([]byte(got.data), &refused); err != nil || got.name != "error" || refused.Code != "interrupted" {
		t.Fatalf("got %+v", got)
	}
}

func TestASlowWatcherMissesOutputAndHoldsNothingUp(t *testing.T) {
	h := &hub{watchers: map[*watcher]struct{}{}}
	slow := h.watch()
	line := []byte(strings.Repeat("x", 1000))
	const lines = 100_000
	for range lines {
		h.publish("stdout", line)
	}
	var kept, missed int64
	events := slow.take()
	for _, e := range events {
		kept += int64(len(e.data))
		missed += e.gap
	}
	if kept+missed != lines*1000 || kept > watcherBytes || kept < watcherBytes/2 {
		t.Fatalf("kept %d, missed %d", kept, missed)
	}
	if last := events[len(events)-1]; last.gap == 0 {
		t.Fatal("the gap is not where the output is missing")
	}
	h.publish("stdout", []byte("again"))
	if events := slow.take(); len(events) != 1 || string(events[0].data) != "again" {
		t.Fatalf("got %+v", events)
	}
}

func TestSmallOutputOnChangingStreamsCostsNoMoreThanItMay(t *testing.T) {
	h := &hub{watchers: map[*watcher]struct{}{}}
	slow := h.watch()
	for range 100_000 {
		h.publish("stdout", []byte("x"))
		h.publish("stderr", []byte("y"))
	}
	if events := slow.take(); len(events) > watcherBytes/eventBytes+1 {
		t.Fatalf("%d events are kept", len(events))
	}
}

// recorder is a client in the same bubble of virtual time.
type recorder struct {
	*httptest.ResponseRecorder
	mu sync.Mutex
}

func (r *recorder) Write(data []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(data)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

func TestASilentCallBeatsEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := makeServer(t, Options{Tools: []tool.Tool{fake{"nap", "", func(context.Context, tool.Call) tool.Result {
			time.Sleep(35 * time.Second)
			return ok("rested")
		}}}})
		s.Prepare(nil)
		w := &recorder{ResponseRecorder: httptest.NewRecorder()}
		request := httptest.NewRequest("POST", "/v1/calls/stream", strings.NewReader(callBody("c1", "nap", `{}`)))
		request.Header.Set("Authorization", sign("r1", "act"))
		go s.Handler().ServeHTTP(w, request)

		time.Sleep(34 * time.Second)
		synctest.Wait()
		if got := w.text(); got != strings.Repeat(": alive\n\n", 3) {
			t.Fatalf("got %q", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.text(); !strings.Contains(got, "event: result\n") {
			t.Fatalf("got %q", got)
		}
	})
}
