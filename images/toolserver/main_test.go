package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary stands in for the program when it is asked to.
func TestMain(m *testing.M) {
	if os.Getenv("TOOLSERVER_TEST_MAIN") != "" {
		os.Unsetenv("TOOLSERVER_TEST_MAIN")
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const keys = `{"k1":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`

func program(t *testing.T, args []string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append([]string{"TOOLSERVER_TEST_MAIN=1", "PATH=" + os.Getenv("PATH")}, env...)
	cmd.Dir = t.TempDir()
	return cmd
}

// serving starts the program and returns its address.
func serving(t *testing.T, prefix []string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := program(t, []string{"serve"}, append([]string{
		"ROLLCAGE_SANDBOX=sbx-1", "ROLLCAGE_KEYS=" + keys, "ROLLCAGE_LISTEN=127.0.0.1:0"}, env...)...)
	if prefix != nil {
		cmd.Args = append(append(prefix, cmd.Path), cmd.Args[1:]...)
		cmd.Path, _ = exec.LookPath(prefix[0])
	}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var event struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Msg == "serving" {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd, "http://" + event.Address
		}
		t.Log(lines.Text())
	}
	t.Fatal("it does not serve")
	return nil, ""
}

func status(t *testing.T, url string) int {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func awaitStatus(t *testing.T, url string, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); status(t, url) != want; {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not become %d", url, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestItBecomesReadyAndStopsWhenAsked(t *testing.T) {
	cmd, url := serving(t, nil, `ROLLCAGE_CONFIG={"setup":["true"]}`)
	awaitStatus(t, url+"/readyz", 200)
	began := time.Now()
	cmd.Process.Signal(syscall.SIGTERM)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exitStopped {
		t.Fatalf("it ended with %v", cmd.ProcessState)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Fatalf("stopping took %v", took)
	}
}

func TestAFailingSetUpLeavesItServingAndUnready(t *testing.T) {
	_, url := serving(t, nil, `ROLLCAGE_CONFIG={"setup":["exit 3"]}`)
	awaitStatus(t, url+"/healthz", 200)
	if got := status(t, url+"/readyz"); got != 503 {
		t.Fatalf("got %d", got)
	}
}

func TestSignalsThatAreNotARequestToStopAreForgotten(t *testing.T) {
	cmd, url := serving(t, nil)
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1} {
		cmd.Process.Signal(signal)
	}
	awaitStatus(t, url+"/readyz", 200)
}

func TestAMistakeInTheConfigurationEndsItAtOnce(t *testing.T) {
	for name, env := range map[string][]string{
		"nothing at all":   {},
		"an unknown field": {"ROLLCAGE_SANDBOX=s", "ROLLCAGE_KEYS=" + keys, `ROLLCAGE_CONFIG={"x":1}`},
		"a schema that cannot be enforced": {"ROLLCAGE_SANDBOX=s", "ROLLCAGE_KEYS=" + keys, "ROLLCAGE_LISTEN=127.0.0.1:0",
			`ROLLCAGE_CONFIG={"custom_tools":[{"name":"x","command":["x"],"parameters":{"oneOf":[]}}]}`},
		"a descriptor that is no socket": {"ROLLCAGE_SANDBOX=s", "ROLLCAGE_KEYS=" + keys, "ROLLCAGE_LISTEN=fd:99"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := program(t, []string{"serve"}, env...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "toolserver_failed") {
				t.Fatalf("got %v\n%s", err, out)
			}
		})
	}
}

func TestInstallCopiesTheBinaryForEveryoneAndNobodyToChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "toolserver")
	for range 2 {
		if out, err := program(t, []string{"install", path}).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o555 {
		t.Fatalf("got %v, %v", info, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
	cmd := exec.Command(path, "version")
	cmd.Env = []string{"TOOLSERVER_TEST_MAIN=1"}
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != version {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestInstallThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "taken"), 0o755)
	if err := program(t, []string{"install", filepath.Join(dir, "taken")}).Run(); err == nil {
		t.Fatal("a directory was replaced")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Fatalf("left behind: %v", entries)
	}
}

func TestASandboxEndsWithWhoeverHoldsItsLifeline(t *testing.T) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := program(t, []string{"serve"}, "ROLLCAGE_SANDBOX=sbx-1", "ROLLCAGE_KEYS="+keys,
		"ROLLCAGE_LISTEN=127.0.0.1:0", "ROLLCAGE_LIFELINE=fd:3")
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	ours.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitStopped {
		t.Fatalf("got %v, want exit code %d", err, exitStopped)
	}
}

func TestAnInheritedSocketIsServed(t *testing.T) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		t.Fatal(err)
	}
	syscall.Listen(fd, 8)
	cmd := program(t, []string{"serve"}, "ROLLCAGE_SANDBOX=sbx-1", "ROLLCAGE_KEYS="+keys, "ROLLCAGE_LISTEN=fd:3")
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "socket")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	client := http.Client{Transport: &http.Transport{DialContext: dialUnix(socket)}}
	response, err := client.Get("http://sandbox/healthz")
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("got %v, %v", response, err)
	}
}
