package server

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/archive"
	"rollcage.dev/toolserver/internal/tool"
)

const sealed = `{"left":0,"sealed":true}`

func TestAfterTheSealNothingNewRunsAndRepeatsGetTheirResult(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}, Files: archive.New(t.TempDir())})
	first := h.call(t, "c1", "echo", `{"x":1}`)
	if got := h.send(t, "POST", "/v1/seal", ""); got.status != 200 || got.body != sealed {
		t.Fatalf("got %d %s", got.status, got.body)
	}

	expect(t, h.call(t, "c2", "echo", `{}`), 410, "sealed")
	expect(t, h.call(t, "c3", "none", `{}`), 410, "sealed")
	expect(t, h.send(t, "POST", "/v1/calls/stream", callBody("c4", "echo", `{}`)), 410, "sealed")
	expect(t, h.send(t, "PUT", "/v1/files?path=x", "x"), 410, "sealed")
	expect(t, h.send(t, "PUT", "/v1/tree?path=x", ""), 410, "sealed")
	expect(t, h.call(t, "c1", "echo", `{"x":2}`), 409, "call_conflict")
	expect(t, h.send(t, "GET", "/v1/calls/c2", ""), 404, "unknown_call")
	if again := h.call(t, "c1", "echo", `{"x":1}`); again.body != first.body || again.header.Get(replayedHeader) != "true" {
		t.Fatalf("got %d %s", again.status, again.body)
	}
	if earlier := h.send(t, "GET", "/v1/calls/c1", ""); earlier.body != first.body {
		t.Fatalf("got %d %s", earlier.status, earlier.body)
	}
}

func TestSealingTwiceIsTheSame(t *testing.T) {
	frozen := 0
	h := start(t, Options{Freeze: func() int { frozen++; return 3 }})
	for range 2 {
		if got := h.send(t, "POST", "/v1/seal", ""); got.body != `{"left":3,"sealed":true}` {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if frozen != 1 {
		t.Fatalf("frozen %d times", frozen)
	}
}

func TestASealIsAskedForLikeEverythingElse(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	expect(t, h.send(t, "POST", "/v1/seal", "", as("r1", "inspect")), 403, "wrong_scope")
	expect(t, h.send(t, "POST", "/v1/seal", "x"), 400, "bad_request")
	expect(t, h.send(t, "POST", "/v1/seal?wait_ms=x", ""), 400, "bad_request")
	expect(t, h.send(t, "POST", "/v1/seal", "", header(bootHeader, "another")), 409, "restarted")
	expect(t, h.send(t, "GET", "/v1/seal", ""), 405, "method_not_allowed")
	if h.fence.Bound() != nil {
		t.Fatal("a refused seal has bound the sandbox")
	}
	h.call(t, "c1", "echo", `{}`)
	expect(t, h.send(t, "POST", "/v1/seal", "", as("r2", "act")), 409, "bound_elsewhere")
	h.call(t, "c2", "echo", `{}`).result(t)
	if h.sealed() {
		t.Fatal("it is sealed")
	}
}

func TestASandboxThatIsNotReadyIsNotSealed(t *testing.T) {
	h := start(t, Options{})
	h.setup.set(setupRunning, "")
	expect(t, h.send(t, "POST", "/v1/seal", ""), 503, "not_ready")
	if h.fence.Bound() != nil {
		t.Fatal("it was bound")
	}
}

func TestACallThatRunsMayEndBeforeTheSeal(t *testing.T) {
	b := newBlocker()
	frozen := false
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}, Freeze: func() int { frozen = true; return 0 }})
	running := h.background(t, "c1", "wait", `{}`)
	<-b.started
	sealing := h.seal(t, "?wait_ms=600000")
	<-h.open.Done()
	expect(t, h.call(t, "c2", "wait", `{}`), 410, "sealed")
	if frozen {
		t.Fatal("frozen under a call that runs")
	}

	close(b.release)

	if got := (<-running).result(t); got.Output != "released" {
		t.Fatalf("got %+v", got)
	}
	if got := <-sealing; got.body != sealed || !frozen {
		t.Fatalf("got %d %s", got.status, got.body)
	}
}

func TestACallThatRunsTooLongIsEndedByTheSealAndKeepsItsResult(t *testing.T) {
	ending := fake{"ending", "", func(ctx context.Context, call tool.Call) tool.Result {
		<-ctx.Done()
		return tool.Result{Class: tool.TimedOut, Output: "so far"}
	}}
	h := start(t, Options{Tools: []tool.Tool{ending}})
	running := h.background(t, "c1", "ending", `{}`)
	h.awaitCalls(1)
	if got := h.send(t, "POST", "/v1/seal", ""); got.body != sealed {
		t.Fatalf("got %d %s", got.status, got.body)
	}

	result := <-running
	if got := result.result(t); got.Class != tool.TimedOut || got.Output != "so far" {
		t.Fatalf("got %+v", got)
	}
	if again := h.call(t, "c1", "ending", `{}`); again.body != result.body {
		t.Fatalf("got %d %s", again.status, again.body)
	}
}

func TestACallThatWaitsIsRefusedByTheSeal(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}, ConcurrentCalls: 1, WaitingCalls: 1})
	running := h.background(t, "c1", "wait", `{}`)
	<-b.started
	waiting := h.background(t, "c2", "wait", `{}`)
	h.awaitCalls(2)
	sealing := h.seal(t, "?wait_ms=600000")

	expect(t, <-waiting, 410, "sealed")
	close(b.release)
	(<-running).result(t)
	<-sealing
	expect(t, h.call(t, "c2", "wait", `{}`), 410, "sealed")
	if len(b.started) != 0 {
		t.Fatal("it ran")
	}
}

func TestASealOutlivesItsClient(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	running := h.background(t, "c1", "wait", `{}`)
	<-b.started
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	request := h.request(t, "POST", "/v1/seal?wait_ms=600000", "").WithContext(ctx)
	go func() {
		_, err := http.DefaultClient.Do(request)
		gone <- err
	}()
	<-h.open.Done()
	cancel()
	if <-gone == nil {
		t.Fatal("the client did not go")
	}
	close(b.release)
	(<-running).result(t)
	<-h.seal(t, "")
}

func TestAnUploadThatStallsIsCutOffByTheSeal(t *testing.T) {
	dir := t.TempDir()
	h := start(t, Options{Files: archive.New(dir)})
	body, stalled := io.Pipe()
	defer stalled.Close()
	request := h.request(t, "PUT", "/v1/files?path=x", "")
	request.Body, request.ContentLength = body, 100
	answered := make(chan reply, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		answered <- read(t, response)
	}()
	io.WriteString(stalled, "half")
	for names := []string{}; len(names) == 0; names, _ = filepath.Glob(filepath.Join(dir, ".rollcage-*")) {
		time.Sleep(time.Millisecond)
	}

	if got := h.send(t, "POST", "/v1/seal", ""); got.body != sealed {
		t.Fatalf("got %d %s", got.status, got.body)
	}

	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("%v are left", left)
	}
	expect(t, <-answered, 410, "sealed")
}

func TestFilesCanBeReadFromASealedSandbox(t *testing.T) {
	h, _ := startWithFiles(t)
	h.send(t, "PUT", "/v1/files?path=x", "content")
	<-h.seal(t, "")
	if got := h.send(t, "GET", "/v1/files?path=x", ""); got.body != "content" {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if got := h.send(t, "GET", "/v1/tree?path=.", ""); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
}

func TestStoppingASandboxThatIsBeingSealedInterruptsItsCalls(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	running := h.background(t, "c1", "wait", `{}`)
	<-b.started
	sealing := h.seal(t, "?wait_ms=600000")
	<-h.open.Done()

	h.Stop(context.Background(), func() {})

	expect(t, <-running, 500, "interrupted")
	if got := <-sealing; got.body != sealed {
		expect(t, got, 503, "stopping")
	}
}

// seal asks for it and hands over the answer when it comes.
func (h *harness) seal(t *testing.T, query string) <-chan reply {
	t.Helper()
	answered := make(chan reply, 1)
	request := h.request(t, "POST", "/v1/seal"+query, "")
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			close(answered)
			return
		}
		answered <- read(t, response)
	}()
	return answered
}
