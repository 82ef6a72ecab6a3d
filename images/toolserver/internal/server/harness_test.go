package server

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

var (
	testPublic, testPrivate, _ = ed25519.GenerateKey(nil)
	testNow                    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// fake is a tool whose work is a function of the test.
type fake struct {
	name   string
	schema string
	run    func(context.Context, tool.Call) tool.Result
}

func (f fake) Name() string        { return f.name }
func (f fake) Description() string { return "a tool for tests" }
func (f fake) Parameters() json.RawMessage {
	if f.schema == "" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return json.RawMessage(f.schema)
}
func (f fake) Run(ctx context.Context, call tool.Call) tool.Result { return f.run(ctx, call) }

func ok(output string) tool.Result { return tool.Result{Class: tool.OK, Output: output} }

// echo answers with its arguments, as the tool sees them.
var echo = fake{"echo", "", func(_ context.Context, call tool.Call) tool.Result { return ok(string(call.Arguments)) }}

// blocker runs until it is let go, and reports each start.
type blocker struct {
	started chan string
	release chan struct{}
}

func newBlocker() *blocker { return &blocker{make(chan string, 100), make(chan struct{})} }

func (b *blocker) tool(name string) fake {
	return fake{name, "", func(ctx context.Context, call tool.Call) tool.Result {
		b.started <- call.ID
		select {
		case <-b.release:
			return ok("released")
		case <-ctx.Done():
			return tool.Result{Class: tool.Failed, Output: "killed"}
		}
	}}
}

type harness struct {
	*Server
	web *httptest.Server
}

func start(t *testing.T, options Options) *harness {
	t.Helper()
	s := makeServer(t, options)
	if err := s.Prepare(nil); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		s.Stop(context.Background(), func() {})
		web.Close()
	})
	return &harness{s, web}
}

func makeServer(t *testing.T, options Options) *Server {
	t.Helper()
	options.Sandbox = "sbx-1"
	options.BootID = "boot-1"
	options.Keys = map[string]ed25519.PublicKey{"k1": testPublic}
	options.Now = func() time.Time { return testNow }
	if options.ConcurrentCalls == 0 {
		options.ConcurrentCalls, options.WaitingCalls = 16, 64
	}
	s, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sign(rollout, scope string) string {
	claims := fmt.Sprintf(`{"kid":"k1","aud":"sbx-1","rol":%q,"scp":%q,"iat":%d,"exp":%d}`,
		rollout, scope, testNow.Unix(), testNow.Unix()+600)
	payload := base64.RawURLEncoding.EncodeToString([]byte(claims))
	signature := ed25519.Sign(testPrivate, []byte("rollcage-token-v1."+payload))
	return "Rollcage " + payload + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// reply is an answer, read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) code() string {
	var refused refusal
	json.Unmarshal([]byte(r.body), &refused)
	return refused.Code
}

func (r reply) result(t *testing.T) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != http.StatusOK {
		t.Fatalf("no result: %d %s", r.status, r.body)
	}
	return a
}

// send makes a request on behalf of rollout r1 unless edit says otherwise.
func (h *harness) send(t *testing.T, method, path, body string, edit ...func(*http.Request)) reply {
	t.Helper()
	response, err := http.DefaultClient.Do(h.request(t, method, path, body, edit...))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, response)
}

func (h *harness) request(t *testing.T, method, path, body string, edit ...func(*http.Request)) *http.Request {
	t.Helper()
	request, err := http.NewRequest(method, h.web.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", sign("r1", "act"))
	for _, e := range edit {
		e(request)
	}
	return request
}

func read(t *testing.T, response *http.Response) reply {
	t.Helper()
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response.StatusCode, response.Header, string(content)}
}

// call makes a call and waits for its answer.
func (h *harness) call(t *testing.T, id, tool, arguments string, edit ...func(*http.Request)) reply {
	t.Helper()
	return h.send(t, "POST", "/v1/calls", callBody(id, tool, arguments), edit...)
}

func callBody(id, tool, arguments string) string {
	return fmt.Sprintf(`{"call_id":%q,"tool":%q,"arguments":%s}`, id, tool, arguments)
}

// background makes a call and hands over its answer when it comes.
func (h *harness) background(t *testing.T, id, tool, arguments string) <-chan reply {
	t.Helper()
	answered := make(chan reply, 1)
	request := h.request(t, "POST", "/v1/calls", callBody(id, tool, arguments))
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

// awaitCalls returns once that many calls stand in the journal.
func (h *harness) awaitCalls(n int) {
	for calls := 0; calls != n; calls, _ = h.journal.Size() {
		time.Sleep(time.Millisecond)
	}
}

func as(rollout, scope string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", sign(rollout, scope)) }
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func expect(t *testing.T, got reply, status int, code string) {
	t.Helper()
	if got.status != status || got.code() != code {
		t.Fatalf("got %d %s, want %d %s", got.status, got.body, status, code)
	}
}
