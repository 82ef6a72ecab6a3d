package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"rollcage.dev/toolserver/internal/name"
	"rollcage.dev/toolserver/internal/strictjson"
)

// Claims are what a token says. Times are seconds since the epoch.
type Claims struct {
	Key      string
	Audience string
	Rollout  string
	Scope    Scope
	Issued   int64
	Expires  int64
}

// maxTime: beyond it, numbers in JSON stop being exact for some readers.
const maxTime = 1 << 53

var (
	keyPattern     = name.New("A-Za-z0-9_.-", 64)
	sandboxPattern = name.New("A-Za-z0-9_.:/-", 253)
	rolloutPattern = name.New("A-Za-z0-9_.:-", 200)
	scopePattern   = name.New("a-z_", 32)

	fieldNames = []string{"kid", "aud", "rol", "scp", "iat", "exp"}
)

// ValidSandbox says whether a token could name this sandbox at all.
func ValidSandbox(text string) bool { return sandboxPattern.MatchString(text) }

// ValidKeyID says whether a token could name this key at all.
func ValidKeyID(text string) bool { return keyPattern.MatchString(text) }

func parse(payload string) (Claims, error) {
	raw, err := decode(payload)
	if err != nil {
		return Claims{}, errors.New("payload is not base64url")
	}
	fields, err := strictjson.Fields(raw, fieldNames...)
	if err != nil || len(fields) != len(fieldNames) {
		return Claims{}, errors.New("payload does not have exactly the fields of a token")
	}
	r := reader{fields: fields}
	claims := Claims{
		Key:      r.text("kid"),
		Audience: r.text("aud"),
		Rollout:  r.text("rol"),
		Scope:    Scope(r.text("scp")),
		Issued:   r.time("iat"),
		Expires:  r.time("exp"),
	}
	if r.err != nil {
		return Claims{}, r.err
	}
	return claims, claims.check()
}

func (c Claims) check() error {
	switch {
	case !keyPattern.MatchString(c.Key):
		return errors.New("kid is not a key id")
	case !sandboxPattern.MatchString(c.Audience):
		return errors.New("aud is not a sandbox")
	case !scopePattern.MatchString(string(c.Scope)):
		return errors.New("scp is not a scope")
	// Only inspect may do without a rollout.
	case (c.Rollout != "" || c.Scope == Act) && !rolloutPattern.MatchString(c.Rollout):
		return errors.New("rol is not a rollout id")
	case c.Expires <= c.Issued:
		return errors.New("exp does not lie after iat")
	case c.Expires-c.Issued > int64(maxLifetime.Seconds()):
		return errors.New("lives longer than one hour")
	}
	return nil
}

// reader decodes fields one by one and keeps the first error.
type reader struct {
	fields map[string]json.RawMessage
	err    error
}

func (r *reader) text(name string) string {
	var text *string
	if err := json.Unmarshal(r.fields[name], &text); err != nil || text == nil {
		r.fail("%s is not a text", name)
		return ""
	}
	return *text
}

func (r *reader) time(name string) int64 {
	seconds, err := strconv.ParseInt(string(r.fields[name]), 10, 64)
	if err != nil || seconds < 0 || seconds > maxTime {
		r.fail("%s is not a time in whole seconds", name)
	}
	return seconds
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}
