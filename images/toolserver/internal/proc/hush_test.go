package proc

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hears says whether SIGCHLD has its handler.
func hears() bool {
	var now sigaction
	rtSigaction(syscall.SIGCHLD, nil, &now)
	return now.handler > 1
}

func TestAShortCallKeepsSIGCHLDAway(t *testing.T) {
	// On a busy machine the shell may take longer than the silence lasts.
	waitFor(t, "silence during a call", func() bool {
		command := sh("echo x")
		heard := true
		command.Stdout = func([]byte) { heard = hears() }
		run(t, command)
		if !hears() {
			t.Fatal("SIGCHLD is kept away after the call")
		}
		return !heard
	})
}

func TestALongCallHearsOfDeathsAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	command := sh("while :; do echo x; sleep 0.01; done")
	command.Stdout = func([]byte) {
		if hears() {
			cancel()
		}
	}
	if outcome, err := Run(ctx, command); err != nil || !outcome.Stopped {
		t.Errorf("got %+v, %v", outcome, err)
	}
}

func TestNothingIsHushedByACallThatCannotStart(t *testing.T) {
	command := sh("")
	command.Path = "/does/not/exist"
	Run(context.Background(), command)
	if !hears() {
		t.Error("SIGCHLD is kept away")
	}
}

func TestDeathsAreNoticedWhileCallsFollowEachOther(t *testing.T) {
	mark := NewMark()
	bystander, err := Start(Spec{
		Path: "/bin/sleep", Args: []string{"sleep", "0.05"}, Descriptors: []int{Null(), Null(), Null()},
	}, mark, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer End(bystander.Pid, mark)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					Run(context.Background(), withOutput(sh(":")))
				}
			}
		})
	}
	select {
	case <-bystander.Done():
	case <-time.After(10 * time.Second):
		t.Error("it died unheard")
	}
	close(stop)
	group.Wait()
}

func TestWithoutAPidfdTheSignalTellsOfTheDeath(t *testing.T) {
	pipes, err := openPipes(withOutput(sh("")))
	if err != nil {
		t.Fatal(err)
	}
	defer pipes.close()
	mark := NewMark()
	// As Run does it where there are no such descriptors.
	process, err := start(Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 0.05"}, Descriptors: pipes.child[:],
	}, mark, pipes.watch.wake, false)
	if err != nil {
		t.Fatal(err)
	}
	defer End(process.Pid, mark)
	pipes.follow(process)
	timedOut, stopped := process.attend(context.Background(), pipes, time.Now().Add(10*time.Second))
	if timedOut || stopped || !process.Exited() {
		t.Errorf("timed out %v, stopped %v", timedOut, stopped)
	}
}

func TestALateWakeOfOneCallDoesNotDisturbTheNext(t *testing.T) {
	var before *watch
	for range 20 {
		pipes, err := openPipes(withOutput(sh("")))
		if err != nil {
			t.Fatal(err)
		}
		before = pipes.watch
		pipes.close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				before.wake()
			}
		}()
		if output, outcome := run(t, sh("echo x; sleep 0.01; echo y")); output != "x\ny\n" || outcome.Status != 0 || outcome.TimedOut {
			t.Errorf("got %q, %+v", output, outcome)
		}
		<-done
	}
}

func withOutput(command Command) Command {
	command.Stdout = func([]byte) {}
	return command
}
