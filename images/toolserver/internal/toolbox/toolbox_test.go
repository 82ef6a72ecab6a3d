package toolbox

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func names(b *Box) string {
	var all []string
	for _, one := range b.Tools() {
		all = append(all, one.Name())
	}
	return strings.Join(all, " ")
}

func TestWhatIsOffered(t *testing.T) {
	all := "shell session_create session_run session_interrupt session_close read_file write_file list search"
	cases := []struct {
		name    string
		options Options
		want    string
	}{
		{"everything by default", Options{}, all},
		{"only what is named", Options{Builtins: []string{"list", "shell"}}, "shell list"},
		{"nothing", Options{Builtins: []string{}}, ""},
		{"custom tools after the others", Options{Builtins: []string{"list"}, Custom: []Custom{{Name: "lint", Command: []string{"lint"}}}}, "list lint"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			box, err := New(test.options)
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			if got := names(box); got != test.want {
				t.Errorf("got %s", got)
			}
			for _, one := range box.Tools() {
				var schema map[string]any
				if err := json.Unmarshal(one.Parameters(), &schema); err != nil || schema["type"] != "object" {
					t.Errorf("%s: %v", one.Name(), err)
				}
			}
		})
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	cases := []struct {
		name    string
		options Options
		part    string
	}{
		{"an unknown tool", Options{Builtins: []string{"shel"}}, `no built-in tool "shel"`},
		{"a custom tool with a taken name", Options{Builtins: []string{}, Custom: []Custom{{Name: "shell", Command: []string{"x"}}}}, "is taken"},
		{"two of a name", Options{Custom: []Custom{{Name: "x", Command: []string{"x"}}, {Name: "x", Command: []string{"x"}}}}, "is taken"},
		{"a custom tool without a command", Options{Custom: []Custom{{Name: "x"}}}, "has no command"},
		{"a relative work directory", Options{Workdir: "x"}, "not an absolute path"},
		{"a bad variable", Options{Env: map[string]string{"": "x"}}, "cannot be the name"},
		{"an output too small to say anything", Options{OutputBytes: 10}, "at least"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if _, err := New(test.options); err == nil || !strings.Contains(err.Error(), test.part) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSetupRunsInOrderAndStopsAtTheFirstFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	box, err := New(Options{Workdir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	if err := box.Setup(context.Background(), []string{"echo a >f", "echo b >>f"}, time.Minute); err != nil {
		t.Error(err)
	}
	err = box.Setup(context.Background(), []string{"echo c >>f", "echo trouble; exit 4", "echo d >>f"}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "set-up command 2 of 3 failed") || !strings.Contains(err.Error(), "trouble\n[exit code 4]") {
		t.Errorf("got %v", err)
	}
	if content, _ := os.ReadFile(filepath.Join(dir, "f")); string(content) != "a\nb\nc\n" {
		t.Errorf("got %q", content)
	}
	err = box.Setup(context.Background(), []string{"sleep 0.2", "sleep 100"}, 400*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("got %v", err)
	}
}
