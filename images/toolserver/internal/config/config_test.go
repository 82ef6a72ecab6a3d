package config

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

const keys = `{"k1":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`

func load(changes map[string]string) (Config, error) {
	return Load(func(name string) string {
		if value, changed := changes[name]; changed {
			return value
		}
		return map[string]string{"ROLLCAGE_SANDBOX": "sbx-1", "ROLLCAGE_KEYS": keys}[name]
	})
}

func TestTheSmallestConfigurationHasDefaults(t *testing.T) {
	got, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Environment{SetupTimeout: 10 * time.Minute, Limits: Limits{
		DefaultTimeout: time.Minute, MaxTimeout: 9 * time.Minute, OutputBytes: 65536,
		ConcurrentCalls: 16, WaitingCalls: 64,
	}}
	if !reflect.DeepEqual(got.Environment, want) || got.Listen.Address != ":8750" || len(got.Keys) != 1 {
		t.Fatalf("got %+v", got)
	}
}

func TestTheDocumentedExampleIsRead(t *testing.T) {
	got, err := load(map[string]string{"ROLLCAGE_CONFIG": `{
		"workdir": "/workspace", "shell": ["/bin/bash", "-c"], "env": {"LANG": "C.UTF-8"},
		"tools": ["shell", "read_file"],
		"custom_tools": [{"name": "lint", "description": "…", "command": ["/opt/lint"],
			"parameters": {"type": "object"}, "timeout_ms": 30000}],
		"setup": ["pip install -e ."], "setup_timeout_ms": 600000, "order": "serial",
		"limits": {"default_timeout_ms": 60000, "max_timeout_ms": 540000, "output_bytes": 65536,
			"concurrent_calls": 16, "waiting_calls": 64}}`})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Serial || got.CustomTools[0].Timeout != 30*time.Second || got.Tools[1] != "read_file" {
		t.Fatalf("got %+v", got)
	}
}

func TestASmallMaximumLowersTheDefaultTimeout(t *testing.T) {
	got, err := load(map[string]string{"ROLLCAGE_CONFIG": `{"limits":{"max_timeout_ms":500}}`})
	if err != nil || got.Limits.DefaultTimeout != 500*time.Millisecond {
		t.Fatalf("got %v, %v", got.Limits, err)
	}
}

func TestListenForms(t *testing.T) {
	for text, want := range map[string]Listen{
		"127.0.0.1:80": {Address: "127.0.0.1:80"},
		"[::1]:0":      {Address: "[::1]:0"},
		"fd:3":         {FD: 3, IsFD: true},
	} {
		if got, err := load(map[string]string{"ROLLCAGE_LISTEN": text}); err != nil || got.Listen != want {
			t.Errorf("%s: got %+v, %v", text, got.Listen, err)
		}
	}
}

func TestAMistakeIsAnErrorAtStart(t *testing.T) {
	cases := []struct{ name, variable, value string }{
		{"no sandbox", "ROLLCAGE_SANDBOX", ""},
		{"a sandbox with a space", "ROLLCAGE_SANDBOX", "a b"},
		{"no keys", "ROLLCAGE_KEYS", ""},
		{"an empty set of keys", "ROLLCAGE_KEYS", "{}"},
		{"a short key", "ROLLCAGE_KEYS", `{"k1":"AAAA"}`},
		{"a key without a name", "ROLLCAGE_KEYS", strings.Replace(keys, "k1", "", 1)},
		{"no port", "ROLLCAGE_LISTEN", "localhost"},
		{"a port too large", "ROLLCAGE_LISTEN", ":70000"},
		{"standard output as a socket", "ROLLCAGE_LISTEN", "fd:1"},
		{"standard input as a lifeline", "ROLLCAGE_LIFELINE", "fd:0"},
		{"a lifeline that is no descriptor", "ROLLCAGE_LIFELINE", "7"},
		{"an unknown field", "ROLLCAGE_CONFIG", `{"work_dir":"/"}`},
		{"an unknown field deep inside", "ROLLCAGE_CONFIG", `{"limits":{"timeout":1}}`},
		{"a field twice", "ROLLCAGE_CONFIG", `{"workdir":"/a","workdir":"/b"}`},
		{"text after the document", "ROLLCAGE_CONFIG", `{} {}`},
		{"an unknown order", "ROLLCAGE_CONFIG", `{"order":"random"}`},
		{"an empty shell", "ROLLCAGE_CONFIG", `{"shell":[]}`},
		{"a limit of zero", "ROLLCAGE_CONFIG", `{"limits":{"concurrent_calls":0}}`},
		{"a default above the maximum", "ROLLCAGE_CONFIG", `{"limits":{"default_timeout_ms":2,"max_timeout_ms":1}}`},
		{"a time that overflows", "ROLLCAGE_CONFIG", `{"setup_timeout_ms":9223372036854775807}`},
		{"a custom tool without a command", "ROLLCAGE_CONFIG", `{"custom_tools":[{"name":"x"}]}`},
		{"a custom tool with a bad name", "ROLLCAGE_CONFIG", `{"custom_tools":[{"name":"x y","command":["a"]}]}`},
		{"a variable name with =", "ROLLCAGE_CONFIG", `{"env":{"A=B":"c"}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := load(map[string]string{c.variable: c.value}); err == nil {
				t.Fatal("accepted")
			} else if !strings.HasPrefix(err.Error(), c.variable) {
				t.Fatalf("%q does not name the variable", err)
			}
		})
	}
}
