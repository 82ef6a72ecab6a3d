package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func dialUnix(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}

var ownPIDs = []string{"unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"}

func needPIDNamespace(t *testing.T) {
	t.Helper()
	if err := exec.Command(ownPIDs[0], append(ownPIDs[1:], "true")...).Run(); err != nil {
		t.Skipf("no pid namespaces here: %v", err)
	}
}

// Only in a pid namespace of its own is the program what it is in a sandbox.
func TestAsPid1OnlySignalsFromOutsideStopIt(t *testing.T) {
	needPIDNamespace(t)
	// The set-up runs inside and has all the rights that a model has.
	attack := "for s in TERM SEGV QUIT ABRT BUS FPE ILL TRAP SYS HUP INT KILL STOP; do kill -$s 1 || exit 1; done"
	cmd, url := serving(t, ownPIDs, fmt.Sprintf(`ROLLCAGE_CONFIG={"setup":[%q]}`, attack))
	awaitStatus(t, url+"/readyz", 200)

	pid := childOf(t, cmd.Process.Pid)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != exitStopped {
		t.Fatalf("it ended with %v", cmd.ProcessState)
	}
}

func TestAPid1ThatIsCrippledFromInsideEndsWithACodeOfItsOwn(t *testing.T) {
	needPIDNamespace(t)
	cmd, _ := serving(t, ownPIDs, `ROLLCAGE_CONFIG={"setup":["prlimit --pid 1 --nofile=3:3"]}`)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != exitTampered {
		t.Fatalf("it ended with %d", got)
	}
}

func childOf(t *testing.T, parent int) int {
	t.Helper()
	var child int
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err == nil {
		_, err = fmt.Sscan(strings.TrimSpace(string(text)), &child)
	}
	if err != nil {
		t.Fatal(err)
	}
	return child
}
