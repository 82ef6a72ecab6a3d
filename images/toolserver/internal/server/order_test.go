package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"rollcage.dev/toolserver/internal/tool"
)

// enterGate sends a call through a gate, which notes when its turn came.
func enterGate(t *testing.T, g *gate, order *[]int, number int) (leave func()) {
	t.Helper()
	place, err := g.enter()
	if err != nil {
		t.Fatalf("%d: %v", number, err)
	}
	done := make(chan struct{})
	go func() {
		if place.wait(t.Context()) == nil {
			*order = append(*order, number)
			<-done
			g.leave()
		}
	}()
	return func() { close(done) }
}

func TestAGateLetsInInTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, 3)
		var order []int
		var leave []func()
		for i := range 4 {
			leave = append(leave, enterGate(t, g, &order, i))
		}
		if _, err := g.enter(); err != errBusy {
			t.Fatalf("a fifth got %v", err)
		}
		for i := range 4 {
			synctest.Wait()
			if len(order) != i+1 {
				t.Fatalf("%v are in", order)
			}
			leave[i]()
		}
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3}) || g.free != 1 || g.room != 3 {
			t.Fatalf("order %v, %d free, %d may wait", order, g.free, g.room)
		}
	})
}

func TestWhoWaitsWhenTheServerStopsNeverStarts(t *testing.T) {
	g := newGate(1, 1)
	ctx, cancel := context.WithCancelCause(context.Background())
	first, _ := g.enter()
	second, _ := g.enter()
	if first.wait(ctx) != nil {
		t.Fatal("the first had to wait")
	}
	cancel(errStopping)
	g.leave()
	if second.wait(ctx) != errStopping {
		t.Fatal("the second started")
	}
}

func TestSerialCallsRunOneAtATimeInOrder(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}, Serial: true, ConcurrentCalls: 16, WaitingCalls: 8})
	ids := []string{"c0", "c1", "c2", "c3"}
	var answers []<-chan reply
	for _, id := range ids {
		answers = append(answers, h.background(t, id, "wait", `{}`))
		h.awaitCalls(len(answers))
	}
	for i, id := range ids {
		if started := <-b.started; started != id {
			t.Fatalf("%s started before %s", started, id)
		}
		if len(b.started) != 0 {
			t.Fatal("two run at once")
		}
		b.release <- struct{}{}
		(<-answers[i]).result(t)
	}
}

func TestBeyondRunningAndWaitingCallsAreBusyAndLeaveNoTrace(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}, ConcurrentCalls: 1, WaitingCalls: 1})
	first := h.background(t, "c1", "wait", `{}`)
	<-b.started
	second := h.background(t, "c2", "wait", `{}`)
	h.awaitCalls(2)
	expect(t, h.call(t, "c3", "wait", `{}`), 503, "busy")
	expect(t, h.send(t, "GET", "/v1/calls/c3", ""), 404, "unknown_call")

	close(b.release)

	for _, answer := range []<-chan reply{first, second} {
		(<-answer).result(t)
	}
	h.call(t, "c3", "wait", `{}`).result(t)
	if got := h.count.snapshot().Busy; got != 1 {
		t.Fatalf("%d busy counted", got)
	}
}

func TestAnInterruptNeverWaits(t *testing.T) {
	for name, options := range map[string]Options{
		"in serial order":                    {Serial: true, ConcurrentCalls: 1, WaitingCalls: 1},
		"in parallel, when all places taken": {ConcurrentCalls: 1, WaitingCalls: 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocker()
			interrupt := fake{urgentTool, "", func(context.Context, tool.Call) tool.Result {
				close(b.release)
				return ok("interrupted")
			}}
			options.Tools = []tool.Tool{b.tool("wait"), interrupt}
			h := start(t, options)
			first := h.background(t, "c1", "wait", `{}`)
			<-b.started
			h.call(t, "c2", urgentTool, `{}`).result(t)
			(<-first).result(t)
		})
	}
}

func TestArgumentsInFlightAreBoundedTogether(t *testing.T) {
	b := newBlocker()
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait")}})
	big := `{"x":"` + strings.Repeat("x", maxCallBytes-100) + `"}`
	var answers []<-chan reply
	for _, id := range []string{"c1", "c2", "c3", "c4"} {
		answers = append(answers, h.background(t, id, "wait", big))
		<-b.started
	}
	expect(t, h.call(t, "c5", "wait", big), 503, "busy")
	close(b.release)
	for _, answer := range answers {
		(<-answer).result(t)
	}
	// The answer may overtake the bookkeeping behind it.
	h.running.Wait()
	h.call(t, "c5", "wait", big).result(t)
	h.running.Wait()
	if left := h.bodies.left.Load(); left != bodyBytes {
		t.Fatalf("%d bytes were lost", bodyBytes-left)
	}
}

func TestStoppingEndsRunningCallsAndStartsNoWaitingOnes(t *testing.T) {
	b := newBlocker()
	finishing := fake{"finishing", "", func(ctx context.Context, call tool.Call) tool.Result {
		b.started <- call.ID
		<-ctx.Done()
		return ok("done just in time")
	}}
	h := start(t, Options{Tools: []tool.Tool{b.tool("wait"), finishing, echo}, ConcurrentCalls: 2, WaitingCalls: 2})
	finished := h.call(t, "c0", "echo", `{}`)
	running := h.background(t, "c1", "wait", `{}`)
	<-b.started
	late := h.background(t, "c2", "finishing", `{}`)
	<-b.started
	waiting := h.background(t, "c3", "wait", `{}`)
	h.awaitCalls(4)
	killed := false

	h.Stop(context.Background(), func() { killed = true })

	if !killed {
		t.Fatal("nothing was killed")
	}
	expect(t, <-running, 500, "interrupted")
	if got := (<-late).result(t).Output; got != "done just in time" {
		t.Fatalf("got %s", got)
	}
	expect(t, <-waiting, 503, "stopping")
	expect(t, h.call(t, "c4", "echo", `{}`), 503, "stopping")
	expect(t, h.call(t, "c1", "wait", `{}`), 500, "interrupted")
	if again := h.call(t, "c0", "echo", `{}`); again.body != finished.body {
		t.Fatal("a finished call is no longer answered")
	}
	if got := h.send(t, "GET", "/readyz", ""); got.status != http.StatusServiceUnavailable {
		t.Fatalf("ready while stopping: %d", got.status)
	}
}
