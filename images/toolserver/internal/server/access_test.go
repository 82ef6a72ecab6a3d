package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/tool"
)

func TestOnlyHealthAndReadinessAnswerStrangers(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	unsigned := func(r *http.Request) { r.Header.Del("Authorization") }
	for path, methods := range routes {
		for method, route := range methods {
			got := h.send(t, method, path, "", unsigned)
			if route.scopes == nil && got.status != 200 {
				t.Errorf("%s %s: %d", method, path, got.status)
			}
			if route.scopes != nil && got.code() != "unsigned" {
				t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	for _, path := range []string{"/v1/state", "/v1/tools"} {
		if got := h.send(t, "GET", path, "", as("", "inspect")); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	expect(t, h.call(t, "c1", "echo", `{}`, as("r1", "inspect")), 403, "wrong_scope")
	if h.fence.Bound() != nil {
		t.Fatal("an inspector has bound the sandbox")
	}
}

func TestTheFirstCallBindsAndOthersAreRefused(t *testing.T) {
	var taken atomic.Int32
	h := start(t, Options{Tools: []tool.Tool{echo}, Taken: func() { taken.Add(1) }})
	expect(t, h.send(t, "GET", "/v1/calls/c1", "", as("r2", "act")), 404, "unknown_call")
	h.send(t, "GET", "/v1/state", "", as("r2", "act"))
	h.send(t, "GET", "/v1/tools", "", as("r2", "act"))
	if h.fence.Bound() != nil || taken.Load() != 0 {
		t.Fatal("a GET has bound the sandbox")
	}

	h.call(t, "c1", "echo", `{}`)

	if taken.Load() != 1 {
		t.Fatal("nobody was told that it is taken")
	}

	for _, path := range []string{"/v1/calls/c1", "/v1/state", "/v1/tools", "/v1/files?path=x"} {
		expect(t, h.send(t, "GET", path, "", as("r2", "act")), 409, "bound_elsewhere")
	}
	expect(t, h.call(t, "c1", "echo", `{}`, as("r2", "act")), 409, "bound_elsewhere")
	expect(t, h.send(t, "PUT", "/v1/files?path=x", "x", as("r2", "act")), 409, "bound_elsewhere")
	if got := h.count.snapshot().MisroutesRefused; got != 6 {
		t.Fatalf("%d misroutes counted", got)
	}
}

func TestACallMeantForAnEarlierBootIsRefused(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	expect(t, h.call(t, "c1", "echo", `{}`, header(bootHeader, "boot-0")), 409, "restarted")
	if h.fence.Bound() != nil {
		t.Fatal("it has bound the sandbox")
	}
	got := h.call(t, "c1", "echo", `{}`, header(bootHeader, "boot-1"))
	if got.status != 200 || got.header.Get(bootHeader) != "boot-1" {
		t.Fatalf("got %d %v", got.status, got.header)
	}
}

func TestStrangeRequestsAreRefused(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	twice := func(r *http.Request) { r.Header.Add("Authorization", sign("r1", "act")) }
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	good := callBody("c1", "echo", `{}`)
	cases := []struct {
		name, method, path, body string
		edit                     func(*http.Request)
		status                   int
		code                     string
	}{
		{"two tokens", "POST", "/v1/calls", good, twice, 401, "unsigned"},
		{"a body of unknown length", "POST", "/v1/calls", good, chunked, 400, "bad_request"},
		{"a compressed body", "POST", "/v1/calls", good, header("Content-Encoding", "gzip"), 400, "bad_request"},
		{"a path with two slashes", "POST", "//v1/calls", good, nil, 400, "bad_request"},
		{"a path with an escape", "GET", "/v1%2Fstate", "", nil, 404, "not_found"},
		{"a path that climbs", "GET", "/v1/x/../state", "", nil, 404, "not_found"},
		{"a path that ends in a slash", "GET", "/v1/state/", "", nil, 404, "not_found"},
		{"an unknown path", "GET", "/metrics", "", nil, 404, "not_found"},
		{"a wrong method", "DELETE", "/v1/calls", "", nil, 405, "method_not_allowed"},
		{"a GET with a body", "GET", "/v1/state", "x", nil, 400, "bad_request"},
		{"a call beyond 4 MiB", "POST", "/v1/calls", strings.Repeat(" ", maxCallBytes+1), nil, 413, "too_large"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			edits := []func(*http.Request){}
			if c.edit != nil {
				edits = append(edits, c.edit)
			}
			expect(t, h.send(t, c.method, c.path, c.body, edits...), c.status, c.code)
		})
	}
}

func TestAPanicInAHandlerIsAnAnswer(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	// Without files, a transfer dereferences nil.
	expect(t, h.send(t, "GET", "/v1/files?path=x", ""), 500, "internal")
	if h.send(t, "GET", "/healthz", "").status != 200 {
		t.Fatal("the server did not survive")
	}
}

func TestASandboxIsReadyAfterItsSetUp(t *testing.T) {
	s := makeServer(t, Options{Tools: []tool.Tool{echo}})
	if s.ready() {
		t.Fatal("ready before anything ran")
	}
	if err := s.Prepare(func(context.Context) error { return nil }); err != nil || !s.ready() {
		t.Fatalf("not ready: %v", err)
	}
}

func TestAFailedSetUpLeavesTheSandboxUnreadyAndSaysWhy(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	h.Prepare(func(context.Context) error { return errors.New("pip: no such thing" + strings.Repeat("!", 100_000)) })

	expect(t, h.call(t, "c1", "echo", `{}`), 503, "not_ready")
	expect(t, h.send(t, "GET", "/v1/files?path=x", ""), 503, "not_ready")
	if got := h.send(t, "GET", "/readyz", ""); got.status != 503 || got.body != "{}" {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if h.fence.Bound() != nil {
		t.Fatal("a refused call has bound the sandbox")
	}
	var got state
	json.Unmarshal([]byte(h.send(t, "GET", "/v1/state", "").body), &got)
	if got.Ready || got.Setup.State != "failed" || len(got.Setup.Output) != setupOutput {
		t.Fatalf("got %+v", got)
	}
}

func TestStateTellsWhatRecoveryNeeds(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	first := h.call(t, "c1", "echo", `{}`)
	h.call(t, "c1", "echo", `{}`)
	h.call(t, "c2", "nonsense", `{}`)
	h.call(t, "c3", "echo", `{}`, header("Authorization", "Bearer x"))

	var got state
	if err := json.Unmarshal([]byte(h.send(t, "GET", "/v1/state", "").body), &got); err != nil {
		t.Fatal(err)
	}
	if *got.BoundTo != "r1" || got.Sandbox != "sbx-1" || got.BootID != "boot-1" || !got.Ready || got.Setup.State != "none" {
		t.Fatalf("got %+v", got)
	}
	if got.Journal.Calls != 2 || got.Journal.ResultsBytes <= len(first.body) {
		t.Fatalf("got %+v", got.Journal)
	}
	c := got.Counters
	if c.Calls[tool.OK] != 1 || c.Calls[tool.Malformed] != 1 || c.Replays != 1 || c.AuthFailures["unsigned"] != 1 {
		t.Fatalf("got %+v", c)
	}
}

func TestAToolWhoseSchemaCannotBeEnforcedIsAnErrorAtStart(t *testing.T) {
	_, err := New(Options{Tools: []tool.Tool{fake{"odd", `{"oneOf":[]}`, echo.run}}, Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "odd") {
		t.Fatalf("got %v", err)
	}
}
