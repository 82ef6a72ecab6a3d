package journal

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

var generous = Limits{Calls: 1000, Bytes: 1 << 20}

func yes() error { return nil }

func fp(text string) Fingerprint { return FingerprintOf("shell", []byte(text)) }

func finish(t *testing.T, j *Journal, id, body string) {
	t.Helper()
	call, fresh, err := j.Begin(id, fp("{}"), math.MaxInt, yes)
	if err != nil || !fresh {
		t.Fatalf("%s is not new: %v", id, err)
	}
	j.Finish(call, Outcome{200, []byte(body)})
}

func TestARepeatFindsTheFirstAnswer(t *testing.T) {
	j := New(generous)
	finish(t, j, "a", "first")

	call, fresh, err := j.Begin("a", fp("{}"), math.MaxInt, func() error { t.Fatal("asked to admit a repeat"); return nil })
	if err != nil || fresh {
		t.Fatalf("fresh %v, %v", fresh, err)
	}
	<-call.Done()
	if got, err := j.Outcome(call); err != nil || string(got.Body) != "first" {
		t.Fatalf("got %q, %v", got.Body, err)
	}
}

func TestOtherArgumentsAreAConflict(t *testing.T) {
	j := New(generous)
	finish(t, j, "a", "first")
	if _, _, err := j.Begin("a", fp(`{"x":1}`), math.MaxInt, yes); !errors.Is(err, ErrConflict) {
		t.Fatalf("got %v", err)
	}
}

func TestWhatIsRefusedLeavesNoTrace(t *testing.T) {
	j := New(generous)
	busy := errors.New("busy")
	if _, _, err := j.Begin("a", fp("{}"), math.MaxInt, func() error { return busy }); !errors.Is(err, busy) {
		t.Fatalf("got %v", err)
	}
	if _, err := j.Lookup("a"); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	finish(t, j, "a", "later")
}

func TestAWithdrawnCallTellsItsWaitersAndMayBeMadeAgain(t *testing.T) {
	j := New(generous)
	stopping := errors.New("stopping")
	call, _, _ := j.Begin("a", fp("{}"), math.MaxInt, yes)
	waiter, _, _ := j.Begin("a", fp("{}"), math.MaxInt, yes)
	j.Withdraw(call, stopping)
	<-waiter.Done()
	if _, err := j.Outcome(waiter); !errors.Is(err, stopping) {
		t.Fatalf("got %v", err)
	}
	finish(t, j, "a", "second try")
}

func TestOldestAnswersAreDroppedAndNeverRunAgain(t *testing.T) {
	j := New(Limits{Calls: 1000, Bytes: 10})
	finish(t, j, "a", "12345")
	finish(t, j, "b", "12345")
	finish(t, j, "c", "1")

	if _, _, err := j.Begin("a", fp("{}"), math.MaxInt, yes); !errors.Is(err, ErrDropped) {
		t.Fatalf("a: %v", err)
	}
	if _, _, err := j.Begin("a", fp("other"), math.MaxInt, yes); !errors.Is(err, ErrConflict) {
		t.Fatalf("a with other arguments: %v", err)
	}
	if _, err := j.Lookup("a"); !errors.Is(err, ErrDropped) {
		t.Fatalf("a by id: %v", err)
	}
	for _, id := range []string{"b", "c"} {
		if _, err := j.Lookup(id); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	if calls, bytes := j.Size(); calls != 3 || bytes != 6 {
		t.Fatalf("%d calls, %d bytes", calls, bytes)
	}
}

func TestAnAnswerLargerThanTheJournalIsDropped(t *testing.T) {
	j := New(Limits{Calls: 1000, Bytes: 3})
	finish(t, j, "a", "1234")
	if _, err := j.Lookup("a"); !errors.Is(err, ErrDropped) {
		t.Fatalf("got %v", err)
	}
	if _, bytes := j.Size(); bytes != 0 {
		t.Fatalf("%d bytes are kept", bytes)
	}
}

func TestAFullJournalStillAnswersRepeats(t *testing.T) {
	j := New(Limits{Calls: 2, Bytes: 100})
	finish(t, j, "a", "1")
	finish(t, j, "b", "2")
	if _, _, err := j.Begin("c", fp("{}"), math.MaxInt, yes); !errors.Is(err, ErrFull) {
		t.Fatalf("got %v", err)
	}
	if _, fresh, err := j.Begin("a", fp("{}"), math.MaxInt, yes); fresh || err != nil {
		t.Fatalf("fresh %v, %v", fresh, err)
	}
}

func TestNoMoreCallsAreEnteredThanTheRolloutMayMake(t *testing.T) {
	j := New(generous)
	finish(t, j, "a", "1")
	if _, _, err := j.Begin("b", fp("{}"), 1, yes); !errors.Is(err, ErrFull) {
		t.Fatalf("got %v", err)
	}
	if _, fresh, err := j.Begin("a", fp("{}"), 1, yes); fresh || err != nil {
		t.Fatalf("a repeat: fresh %v, %v", fresh, err)
	}
}

func TestOfManyRacingRepeatsOneRuns(t *testing.T) {
	j := New(generous)
	var runs atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			call, fresh, err := j.Begin("a", fp("{}"), math.MaxInt, yes)
			if err != nil {
				t.Error(err)
				return
			}
			if fresh {
				j.Finish(call, Outcome{200, fmt.Appendf(nil, "run %d", runs.Add(1))})
			}
			<-call.Done()
			if got, err := j.Outcome(call); err != nil || string(got.Body) != "run 1" {
				t.Errorf("got %q, %v", got.Body, err)
			}
		})
	}
	group.Wait()
	if runs.Load() != 1 {
		t.Fatalf("ran %d times", runs.Load())
	}
}
