package proc

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

// The pair that tells what running through this package costs. Compare medians,
// from runs of their own: the first must not see the other's reaper.

func report(b *testing.B, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)/10].Microseconds()), "p10-µs")
}

func BenchmarkBareForkExec(b *testing.B) {
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer syscall.Close(null)
	attr := &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(null)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", ":"}, attr)
		if err != nil {
			b.Fatal(err)
		}
		var status syscall.WaitStatus
		syscall.Wait4(pid, &status, 0, nil)
		times = append(times, time.Since(began))
	}
	report(b, times)
}

func BenchmarkRun(b *testing.B) {
	command := Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", ":"}, Env: os.Environ(),
		Stdout: func([]byte) {}, Limit: time.Minute,
	}
	b.ReportAllocs()
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		outcome, err := Run(context.Background(), command)
		if err != nil || outcome.Status != 0 {
			b.Fatal(outcome, err)
		}
		times = append(times, time.Since(began))
	}
	report(b, times)
}
