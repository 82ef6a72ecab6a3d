package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcage.dev/toolserver/internal/facts"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

// bench is a work directory and the tools on it.
type bench struct {
	t    *testing.T
	dir  string
	base *launch.Base
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	return &bench{t, dir, &launch.Base{
		Workdir: dir, Environment: launch.NewEnvironment(nil, dir, nil), Probe: facts.Here("boot"),
		DefaultTimeout: 20 * time.Second, MaxTimeout: time.Minute, OutputBytes: 8 << 10,
	}}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) file(name, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) call(name string, args map[string]any) tool.Result {
	b.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range Tools(b.base) {
		if one.Name() == name {
			result := one.Run(context.Background(), tool.Call{ID: "1", Arguments: text})
			if len(result.Output) > b.base.OutputBytes {
				b.t.Errorf("%d bytes are more than %d", len(result.Output), b.base.OutputBytes)
			}
			return result
		}
	}
	b.t.Fatalf("no tool %s", name)
	return tool.Result{}
}

func (b *bench) expect(result tool.Result, class tool.Class, parts ...string) {
	b.t.Helper()
	for _, part := range parts {
		if result.Class != class || !strings.Contains(result.Output, part) {
			b.t.Errorf("got %s: %q, want %s with %q", result.Class, result.Output, class, part)
		}
	}
}
