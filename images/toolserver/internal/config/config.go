// Package config reads what a sandbox is told at its start. It checks shapes
// and fills in defaults; whether a shell or a work directory exists is found
// out by those who use them.
package config

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rollcage.dev/toolserver/internal/strictjson"
	"rollcage.dev/toolserver/internal/token"
)

// Variables are the ones this program reads. None of them reaches a child.
var Variables = []string{"ROLLCAGE_SANDBOX", "ROLLCAGE_KEYS", "ROLLCAGE_LISTEN", "ROLLCAGE_LIFELINE", "ROLLCAGE_CONFIG"}

// Config is a sandbox's whole configuration.
type Config struct {
	Sandbox string
	Keys    map[string]ed25519.PublicKey
	Listen  Listen
	// Lifeline is a pipe that ends with whoever needs the sandbox; 0: none.
	Lifeline uintptr
	Environment
}

// Environment is what the environment's author chose.
type Environment struct {
	Workdir      string
	Shell        []string
	Env          map[string]string
	Tools        []string // nil: all of them
	CustomTools  []CustomTool
	Setup        []string
	SetupTimeout time.Duration
	Serial       bool
	Limits       Limits
}

// CustomTool is an executable of the image, offered as a tool.
type CustomTool struct {
	Name        string
	Description string
	Command     []string
	Parameters  json.RawMessage
	Timeout     time.Duration // 0: the default limit
}

// Limits bound what calls may take.
type Limits struct {
	DefaultTimeout  time.Duration
	MaxTimeout      time.Duration
	OutputBytes     int
	ConcurrentCalls int
	WaitingCalls    int
}

// Load reads the configuration through getenv, which is os.Getenv but in tests.
func Load(getenv func(string) string) (Config, error) {
	c := Config{Sandbox: getenv("ROLLCAGE_SANDBOX")}
	if !token.ValidSandbox(c.Sandbox) {
		return Config{}, fmt.Errorf("ROLLCAGE_SANDBOX: %q is not a sandbox identity", c.Sandbox)
	}
	var err error
	if c.Keys, err = parseKeys(getenv("ROLLCAGE_KEYS")); err != nil {
		return Config{}, fmt.Errorf("ROLLCAGE_KEYS: %w", err)
	}
	if c.Listen, err = parseListen(getenv("ROLLCAGE_LISTEN")); err != nil {
		return Config{}, fmt.Errorf("ROLLCAGE_LISTEN: %w", err)
	}
	if c.Lifeline, err = parseLifeline(getenv("ROLLCAGE_LIFELINE")); err != nil {
		return Config{}, fmt.Errorf("ROLLCAGE_LIFELINE: %w", err)
	}
	if c.Environment, err = parseEnvironment(getenv("ROLLCAGE_CONFIG")); err != nil {
		return Config{}, fmt.Errorf("ROLLCAGE_CONFIG: %w", err)
	}
	return c, nil
}

func parseKeys(text string) (map[string]ed25519.PublicKey, error) {
	var texts map[string]string
	if err := strictjson.Into([]byte(text), &texts); err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, errors.New("there is no key")
	}
	keys := map[string]ed25519.PublicKey{}
	for id, encoded := range texts {
		if !token.ValidKeyID(id) {
			return nil, fmt.Errorf("%q is not a key id", id)
		}
		key, err := token.ParseKey(encoded)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		keys[id] = key
	}
	return keys, nil
}
