package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/proc"
	"rollcage.dev/toolserver/internal/shell"
)

// MaxSessions bounds what a model can leave open; each has three pipes, a
// shell and an output buffer.
const MaxSessions = 16

// A shell that is not ready by then never will be.
const startLimit = 10 * time.Second

// Manager holds the sessions of a sandbox.
type Manager struct {
	base  *launch.Base
	shell *shell.Shell

	mu sync.Mutex
	// sessions keeps the name of one whose shell ended until it is closed
	// or made anew, to say so; nil while one is being made.
	sessions map[string]*session
	made     int
}

// NewManager makes a manager whose sessions run in the shell that also runs
// single commands, where that is one they can use.
func NewManager(base *launch.Base, shell *shell.Shell) *Manager {
	return &Manager{base: base, shell: shell, sessions: make(map[string]*session)}
}

// refusal is why something was not done, in words for the model.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }

func (m *Manager) create(ctx context.Context, name, directory string, env map[string]string) (*session, error) {
	name, err := m.reserve(name)
	if err != nil {
		return nil, err
	}
	created, err := m.start(ctx, name, directory, env)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		delete(m.sessions, name)
		return nil, err
	}
	m.sessions[name] = created
	return created, nil
}

// reserve takes a name and one of the places.
func (m *Manager) reserve(name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	alive := 0
	for _, s := range m.sessions {
		if s == nil || !s.ended() {
			alive++
		}
	}
	if alive >= MaxSessions {
		return "", refuse("%d sessions are open, which is the most allowed; close one with session_close first", alive)
	}
	for name == "" {
		m.made++
		made := fmt.Sprintf("s%d", m.made)
		if _, taken := m.sessions[made]; !taken {
			name = made
		}
	}
	if old, taken := m.sessions[name]; taken && (old == nil || !old.ended()) {
		return "", refuse("session %q exists; use it, close it with session_close, or choose another name", name)
	}
	m.forgetEnded()
	m.sessions[name] = nil
	return name, nil
}

// forgetEnded keeps the memory of ended sessions bounded.
func (m *Manager) forgetEnded() {
	if len(m.sessions) < 4*MaxSessions {
		return
	}
	for name, s := range m.sessions {
		if s != nil && s.ended() {
			delete(m.sessions, name)
		}
	}
}

func (m *Manager) start(ctx context.Context, name, directory string, env map[string]string) (*session, error) {
	line, err := m.commandLine()
	if err != nil {
		return nil, err
	}
	spec := proc.Spec{Path: line[0], Args: line, Env: m.base.Environment.With(env), Dir: directory}
	created, err := start(name, spec, m.base.OutputBytes)
	if err != nil {
		return nil, refusal(launch.StartFailure(err, line[0], directory))
	}
	// Prompts and start-up messages are nobody's output.
	greeting := created.feed(ctx, func() string { return hush + remember }, startLimit, nil)
	if greeting.over || greeting.timedOut || greeting.stopped {
		created.end()
		return nil, refuse("the shell %s did not start properly: %s", line[0], greeting.text.String)
	}
	return created, nil
}

func (m *Manager) commandLine() ([]string, error) {
	if configured, err := m.shell.Locate(); err == nil {
		if line, ok := commandLine(configured); ok {
			return line, nil
		}
	}
	for _, name := range []string{"bash", "sh"} {
		if path, ok := m.base.Find(name); ok {
			line, _ := commandLine([]string{path})
			return line, nil
		}
	}
	return nil, refuse("there is no shell in this sandbox (neither bash nor sh was found): sessions cannot be made")
}

func (m *Manager) find(name string) (*session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[name]; s != nil {
		return s, nil
	}
	var open []string
	for name, s := range m.sessions {
		if s != nil && !s.ended() {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil, refuse("there is no session %q; none is open, make one with session_create", name)
	}
	slices.Sort(open)
	return nil, refuse("there is no session %q; open are: %s", name, strings.Join(open, ", "))
}

func (m *Manager) remove(name string) (*session, error) {
	s, err := m.find(name)
	if err != nil {
		return nil, err
	}
	s.end()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[name] == s {
		delete(m.sessions, name)
	}
	return s, nil
}

// Close ends all sessions.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range m.sessions {
		if s != nil {
			s.end()
			delete(m.sessions, name)
		}
	}
}
