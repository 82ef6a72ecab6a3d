package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"rollcage.dev/toolserver/internal/tool"
)

func counting(runs *atomic.Int32) fake {
	return fake{"count", "", func(context.Context, tool.Call) tool.Result {
		runs.Add(1)
		return tool.Result{Class: tool.Failed, Output: "<&>\u2028", Data: map[string]int64{"n": int64(runs.Load())}}
	}}
}

func TestARepeatIsAnsweredByteForByteAndRunsNothing(t *testing.T) {
	var runs atomic.Int32
	h := start(t, Options{Tools: []tool.Tool{counting(&runs)}})

	first := h.call(t, "c1", "count", `{"a":1,"b":[2]}`)
	second := h.call(t, "c1", "count", ` { "b" : [ 2 ] , "a" : 1 } `)

	if first.body != second.body || runs.Load() != 1 {
		t.Fatalf("%d runs\n%s\n%s", runs.Load(), first.body, second.body)
	}
	if first.header.Get(replayedHeader) != "" || second.header.Get(replayedHeader) != "true" {
		t.Fatal("only the repeat carries the header")
	}
	if got := first.result(t); got.Class != tool.Failed || got.Facts.BootID != "boot-1" || string(got.Data) != `{"n":1}` {
		t.Fatalf("got %s", first.body)
	}
}

func TestACallBeyondTheMostThatTheRequestAllowsIsNotRun(t *testing.T) {
	var runs atomic.Int32
	h := start(t, Options{Tools: []tool.Tool{counting(&runs)}})
	most := func(r *http.Request) { r.Header.Set(mostCallsHeader, "1") }
	body := func(id string) string { return fmt.Sprintf(`{"call_id":%q,"tool":"count"}`, id) }

	first := h.send(t, "POST", callsPath, body("c1"), most)
	expect(t, h.send(t, "POST", callsPath, body("c2"), most), 503, "journal_full")

	if again := h.send(t, "POST", callsPath, body("c1"), most); again.body != first.body || runs.Load() != 1 {
		t.Fatalf("%d runs\n%s\n%s", runs.Load(), first.body, again.body)
	}
	expect(t, h.send(t, "POST", callsPath, body("c3"), func(r *http.Request) { r.Header.Set(mostCallsHeader, "-1") }), 400, "bad_request")
}

func TestOtherArgumentsOrAnotherToolAreAConflict(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo, counting(new(atomic.Int32))}})
	h.call(t, "c1", "echo", `{"a":1}`)
	expect(t, h.call(t, "c1", "echo", `{"a":2}`), 409, "call_conflict")
	expect(t, h.call(t, "c1", "count", `{"a":1}`), 409, "call_conflict")
	if got := h.count.snapshot().Conflicts; got != 2 {
		t.Fatalf("%d conflicts counted", got)
	}
}

func TestARepeatOfARunningCallWaitsForIt(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	first := h.background(t, "c1", "wait", `{}`)
	<-b.started
	second := h.background(t, "c1", "wait", `{}`)
	expectRunning := h.send(t, "GET", "/v1/calls/c1", "")
	if expectRunning.status != http.StatusAccepted {
		t.Fatalf("got %d", expectRunning.status)
	}
	close(b.release)
	one, two := <-first, <-second
	if one.body != two.body || len(b.started) != 0 {
		t.Fatalf("%s\n%s", one.body, two.body)
	}
}

func TestACallOutlivesItsClientAndIsFoundById(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	ctx, leave := context.WithCancel(context.Background())
	request := h.request(t, "POST", "/v1/calls", callBody("c1", "wait", `{}`)).WithContext(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	<-b.started
	leave()
	<-gone
	close(b.release)

	got := h.send(t, "GET", "/v1/calls/c1?wait_ms=60000", "")

	if got.result(t).Output != "released" || got.header.Get(replayedHeader) != "true" {
		t.Fatalf("got %s", got.body)
	}
}

func TestCallsByIdAreRefusedForWhatTheyAre(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	expect(t, h.send(t, "GET", "/v1/calls/none", ""), 404, "unknown_call")
	expect(t, h.send(t, "GET", "/v1/calls/a%20b", ""), 400, "bad_request")
	expect(t, h.send(t, "GET", "/v1/calls/none?wait_ms=-1", ""), 400, "bad_request")
	expect(t, h.send(t, "GET", "/v1/calls/", ""), 400, "bad_request")
}

func TestMalformedCallsSayWhatIsAllowedAndAreJournaled(t *testing.T) {
	strict := fake{"strict", `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],` +
		`"additionalProperties":false}`, echo.run}
	cases := []struct{ name, tool, arguments, want string }{
		{"an unknown tool", "bash", `{}`, `There is no tool "bash". The tools are: echo, strict.`},
		{"a missing argument", "strict", `{"file":"x"}`, `Bad arguments for strict: "path" is required; ` +
			`"file" is not an argument here. Its arguments: path (string, required).`},
		{"arguments that are a text", "strict", `"{}"`, `Bad arguments for strict: the arguments must be an object. ` +
			`Its arguments: path (string, required).`},
		{"an argument twice", "strict", `{"path":"a","path":"b"}`, `Bad arguments for strict: the arguments are not ` +
			`usable: the name "path" stands twice in one object. Its arguments: path (string, required).`},
		{"no arguments for a tool that takes anything", "echo", `null`, `Bad arguments for echo: the arguments must be ` +
			`an object. Its arguments: none are declared.`},
	}
	h := start(t, Options{Tools: []tool.Tool{echo, strict}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id := strings.ReplaceAll(c.name, " ", "-")
			first := h.call(t, id, c.tool, c.arguments)
			if got := first.result(t); got.Class != tool.Malformed || got.Output != c.want {
				t.Fatalf("got %s %s", got.Class, got.Output)
			}
			if second := h.call(t, id, c.tool, c.arguments); second.body != first.body {
				t.Fatal("a repeat is answered differently")
			}
			expect(t, h.call(t, id, "echo", `{"other":1}`), 409, "call_conflict")
		})
	}
}

func TestAnEndlessToolNameIsCut(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	got := h.call(t, "c1", strings.Repeat("ä", 100_000), `{}`).result(t)
	if got.Class != tool.Malformed || len(got.Tool) > 210 || len(got.Output) > 300 {
		t.Fatalf("%d and %d bytes", len(got.Tool), len(got.Output))
	}
}

func TestToolsSeeCanonicalArguments(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	if got := h.call(t, "c1", "echo", ` {"b":1.0,"a":"\u00e9"} `).result(t).Output; got != `{"a":"é","b":1.0}` {
		t.Fatalf("got %s", got)
	}
	missing := h.send(t, "POST", "/v1/calls", `{"call_id":"c2","tool":"echo"}`).result(t)
	if missing.Output != "{}" {
		t.Fatalf("got %s", missing.Output)
	}
}

func TestToolsDoNotSeeNullForWhatMayBeLeftOut(t *testing.T) {
	strict := fake{"strict", `{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer"}},` +
		`"required":["path"],"additionalProperties":false}`, echo.run}
	h := start(t, Options{Tools: []tool.Tool{strict}})
	if got := h.call(t, "c1", "strict", `{"path":"x","depth":null}`).result(t); got.Output != `{"path":"x"}` {
		t.Fatalf("got %s %s", got.Class, got.Output)
	}
	// Another spelling is another call all the same: what was sent is what is compared.
	expect(t, h.call(t, "c1", "strict", `{"path":"x"}`), 409, "call_conflict")
}

func TestAPanickingToolIsAnErrorThatIsRemembered(t *testing.T) {
	var runs atomic.Int32
	boom := fake{"boom", "", func(context.Context, tool.Call) tool.Result { runs.Add(1); panic("boom") }}
	h := start(t, Options{Tools: []tool.Tool{boom, echo}})
	expect(t, h.call(t, "c1", "boom", `{}`), 500, "internal")
	expect(t, h.call(t, "c1", "boom", `{}`), 500, "internal")
	if runs.Load() != 1 {
		t.Fatalf("ran %d times", runs.Load())
	}
	if h.call(t, "c2", "echo", `{}`).status != 200 {
		t.Fatal("the server did not survive")
	}
}

func TestATextThatIsNoCallIsRefused(t *testing.T) {
	h := start(t, Options{Tools: []tool.Tool{echo}})
	for name, body := range map[string]string{
		"nothing":               ``,
		"a list":                `[]`,
		"an unknown field":      `{"call_id":"c","tool":"echo","arguments":{},"x":1}`,
		"another case":          `{"Call_id":"c","tool":"echo"}`,
		"a field twice":         `{"call_id":"c","tool":"echo","tool":"echo"}`,
		"two documents":         `{"call_id":"c","tool":"echo"}{}`,
		"no call id":            `{"tool":"echo"}`,
		"a call id that climbs": `{"call_id":"../x","tool":"echo"}`,
		"a call id too long":    `{"call_id":"` + strings.Repeat("x", 201) + `","tool":"echo"}`,
		"null as tool":          `{"call_id":"c","tool":null}`,
		"invalid UTF-8":         "{\"call_id\":\"c\",\"tool\":\"\xff\"}",
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, h.send(t, "POST", "/v1/calls", body), 400, "bad_request")
		})
	}
	if h.fence.Bound() != nil {
		t.Fatal("a bad request has bound the sandbox")
	}
	if calls, _ := h.journal.Size(); calls != 0 {
		t.Fatal("a bad request stands in the journal")
	}
}

func FuzzParseRequestAcceptsOnlyCalls(f *testing.F) {
	f.Add([]byte(`{"call_id":"c","tool":"echo","arguments":{"a":[1]}}`))
	f.Add([]byte(`{"call_id":"c","tool":"echo","arguments":{"a":1,"a":2}}`))
	f.Add([]byte(`{"call_id":"c\n","tool":""}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, refused := parseRequest(body)
		if refused != nil {
			return
		}
		if !callIDPattern.MatchString(r.CallID) || len(r.Arguments) == 0 {
			t.Fatalf("accepted %q as %+v", body, r)
		}
		s := &Server{tools: map[string]offered{}}
		if p := s.plan(r); p.malformed == "" || len(p.tool) > maxToolName+3 {
			t.Fatalf("planned %+v", p)
		}
	})
}
