package launch

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/tool"
)

func TestTheEndIsToldInOneLine(t *testing.T) {
	exit := func(code int) proc.Outcome { return proc.Outcome{Known: true, Status: syscall.WaitStatus(code << 8)} }
	killed := proc.Outcome{Known: true, Status: syscall.WaitStatus(syscall.SIGKILL)}
	cases := []struct {
		name    string
		outcome proc.Outcome
		oom     int64
		class   tool.Class
		line    string
	}{
		{"success is silent", exit(0), 0, tool.OK, ""},
		{"an exit code", exit(2), 0, tool.Failed, "[exit code 2]"},
		{"an exit code after an OOM kill", exit(137), 1, tool.Failed, "[exit code 137: out of memory]"},
		{"a signal", killed, 0, tool.Failed, "[killed by signal SIGKILL]"},
		{"an OOM kill", killed, 1, tool.Failed, "[killed by signal SIGKILL: out of memory]"},
		{"an OOM kill that the command got over", exit(0), 2, tool.OK, "[a process was killed: out of memory]"},
		{"a time limit", proc.Outcome{TimedOut: true}, 0, tool.TimedOut, "[timed out after 5000 ms]"},
		{"a stop from outside", proc.Outcome{Stopped: true}, 0, tool.TimedOut, "[stopped: the sandbox takes no more calls]"},
		{"something that cannot be killed", proc.Outcome{TimedOut: true, Left: 2}, 0, tool.TimedOut,
			"[timed out after 5000 ms][2 processes could not be killed]"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			result := tool.Result{Facts: tool.Facts{OOMKills: test.oom}}
			Judge(test.outcome, &result)
			if line := Ending(test.outcome, result.Facts, 5*time.Second); line != test.line || result.Class != test.class {
				t.Errorf("got %s: %s", result.Class, line)
			}
		})
	}
}

func TestTheEnvironmentIsTheImagesWithoutOurs(t *testing.T) {
	image := []string{"A=1", "PWD=/x", "_=/bin/x", "SHLVL=3", "ROLLCAGE_KEYS=k", "KUBERNETES_SERVICE_HOST=h", "EQ=a=b", "odd", "HOME=/h"}
	e := NewEnvironment(image, "/w", map[string]string{"A": "2", "B": "3"})
	want := []string{"A=2", "B=3", "EQ=a=b", "HOME=/h", "PATH=" + defaultPath}
	if got := e.With(nil); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	want = []string{"A=2", "B=4", "EQ=a=b", "HOME=/h", "PATH=/p"}
	if got := e.With(map[string]string{"B": "4", "PATH": "/p"}); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestHomeIsLookedUp(t *testing.T) {
	passwd := filepath.Join(t.TempDir(), "passwd")
	os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\nbad\nme:x:1000:1000::/home/me:/bin/sh\n"), 0o644)
	if got := home(passwd, 1000, "/w"); got != "/home/me" {
		t.Errorf("got %s", got)
	}
	if got := home(passwd, 1001, "/w"); got != "/w" {
		t.Errorf("got %s", got)
	}
	if got := home("/none", 0, "/w"); got != "/w" {
		t.Errorf("got %s", got)
	}
}
