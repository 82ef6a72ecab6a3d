package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"rollcage.dev/toolserver/internal/archive"
	"rollcage.dev/toolserver/internal/config"
	"rollcage.dev/toolserver/internal/guard"
	"rollcage.dev/toolserver/internal/server"
	"rollcage.dev/toolserver/internal/toolbox"
)

const (
	// spareThreads are for the runtime itself, transfers and connections;
	// each call may hold one more.
	spareThreads = 16
	// Killing and answering, then closing connections: together below the
	// two seconds that whoever stops a sandbox has to wait.
	killTime  = 1200 * time.Millisecond
	closeTime = 500 * time.Millisecond
)

func serve() error {
	began := time.Now()
	stop, err := guard.Signals()
	if err != nil {
		return err
	}
	cfg, err := config.Load(os.Getenv)
	if err != nil {
		return err
	}
	for _, name := range config.Variables {
		os.Unsetenv(name)
	}
	if cfg.Workdir == "" {
		// One answer for the tools and the transfers; / where there is none.
		if cfg.Workdir, err = os.Getwd(); err != nil {
			cfg.Workdir = "/"
		}
	}
	if err := guard.Harden(spareThreads + cfg.Limits.ConcurrentCalls); err != nil {
		return err
	}
	abandoned, err := watchLifeline(cfg.Lifeline)
	if err != nil {
		return err
	}
	listener, err := listen(cfg.Listen)
	if err != nil {
		return err
	}
	taken := make(chan struct{})
	tampered, err := watchTampering(taken)
	if err != nil {
		return err
	}
	bootID := rand.Text()
	box, err := toolbox.New(toolOptions(cfg, bootID))
	if err != nil {
		return err
	}
	core, err := server.New(server.Options{
		Sandbox: cfg.Sandbox, Keys: cfg.Keys, BootID: bootID,
		Tools: box.Tools(), Files: archive.New(cfg.Workdir),
		Serial: cfg.Serial, ConcurrentCalls: cfg.Limits.ConcurrentCalls, WaitingCalls: cfg.Limits.WaitingCalls,
		Now: time.Now, Freeze: box.Freeze, Threads: guard.Threads,
		Taken: sync.OnceFunc(func() { close(taken) }),
	})
	if err != nil {
		return err
	}
	go prepare(core, box, cfg)
	trim()

	web := core.HTTPServer()
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(core.Limit(listener, ownAddresses())) }()
	slog.Info("serving", "sandbox", cfg.Sandbox, "boot_id", bootID, "version", version,
		"address", listener.Addr().String(), "start_us", time.Since(began).Microseconds())
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve: %w", err)
	case what := <-tampered:
		return &tamperedError{what}
	case <-abandoned:
	case <-stop:
	}
	shutDown(core, box, web)
	return errStopped
}

// tamperedError ends a sandbox whose model has crippled PID 1.
type tamperedError struct{ what string }

func (e *tamperedError) Error() string { return e.what + " of PID 1 was lowered from inside" }

// watchTampering reports what is taken from PID 1. Outside of a sandbox, where
// it is not PID 1, its limits are its owner's business.
func watchTampering(taken <-chan struct{}) (<-chan string, error) {
	if os.Getpid() != 1 {
		return nil, nil
	}
	baseline, err := guard.Observe()
	if err != nil {
		return nil, fmt.Errorf("cannot observe the limits: %w", err)
	}
	tampered := make(chan string, 1)
	go func() { tampered <- baseline.Watch(taken) }()
	return tampered, nil
}

// watchLifeline tells when the other end of a pipe is closed, as it is when
// whoever started the sandbox has died, in whatever way.
func watchLifeline(fd uintptr) (<-chan struct{}, error) {
	if fd == 0 {
		return nil, nil
	}
	// Then waiting for it takes no thread.
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return nil, fmt.Errorf("lifeline: file descriptor %d: %w", fd, err)
	}
	pipe := os.NewFile(fd, "lifeline")
	abandoned := make(chan struct{})
	go func() {
		// Nothing is ever written: whatever comes, it is the end.
		pipe.Read(make([]byte, 1))
		close(abandoned)
	}()
	return abandoned, nil
}

// prepare runs the set-up while health is already served.
func prepare(core *server.Server, box *toolbox.Box, cfg config.Config) {
	var commands func(context.Context) error
	if len(cfg.Setup) > 0 {
		commands = func(ctx context.Context) error { return box.Setup(ctx, cfg.Setup, cfg.SetupTimeout) }
	}
	began := time.Now()
	if err := core.Prepare(commands); err != nil {
		// The output is in /v1/state; here it could be as long as it likes.
		slog.Error("setup_failed", "after_ms", time.Since(began).Milliseconds())
		return
	}
	slog.Info("ready", "setup_commands", len(cfg.Setup), "setup_ms", time.Since(began).Milliseconds())
}

// shutDown answers what can be answered: the listener stays open while calls
// are ended, so that late requests hear that the sandbox is stopping.
func shutDown(core *server.Server, box *toolbox.Box, web *http.Server) {
	slog.Info("stopping")
	began := time.Now()
	ending, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	core.Stop(ending, box.Close)
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := web.Shutdown(closing); errors.Is(err, context.DeadlineExceeded) {
		web.Close()
	}
	slog.Info("stopped", "after_ms", time.Since(began).Milliseconds())
}

func toolOptions(cfg config.Config, bootID string) toolbox.Options {
	options := toolbox.Options{
		Workdir: cfg.Workdir, Shell: cfg.Shell, Env: cfg.Env, Builtins: cfg.Tools,
		DefaultTimeout: cfg.Limits.DefaultTimeout, MaxTimeout: cfg.Limits.MaxTimeout,
		OutputBytes: cfg.Limits.OutputBytes, BootID: bootID,
	}
	for _, t := range cfg.CustomTools {
		options.Custom = append(options.Custom, toolbox.Custom(t))
	}
	return options
}

func listen(where config.Listen) (net.Listener, error) {
	if !where.IsFD {
		return net.Listen("tcp", where.Address)
	}
	file := os.NewFile(where.FD, "listener")
	if file == nil {
		return nil, fmt.Errorf("there is no file descriptor %d", where.FD)
	}
	// The listener works on a copy, which children do not inherit.
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("file descriptor %d: %w", where.FD, err)
	}
	return listener, nil
}

// ownAddresses cannot change later: that takes a capability which nothing in
// a sandbox has.
func ownAddresses() []netip.Addr {
	found, err := net.InterfaceAddrs()
	if err != nil {
		slog.Warn("addresses_unknown", "error", err.Error())
		return nil
	}
	var own []netip.Addr
	for _, address := range found {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return own
}
