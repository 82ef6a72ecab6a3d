// Package token decides whether a request is signed by the gateway, for this
// sandbox, now. Which rollout the sandbox serves is the fence's business.
package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	scheme = "Rollcage "
	// domain is signed along with the payload, so that a signature made for
	// anything else is no token.
	domain = "rollcage-token-v1."
	// maxBytes bounds the work before the signature is checked.
	maxBytes = 1024
	// clockWindow: clocks of nodes differ by minutes, and a token is not the
	// place to find out.
	clockWindow = 5 * time.Minute
	// maxLifetime keeps a leaked token worth little.
	maxLifetime = time.Hour
)

// Scope is what a token's bearer may do.
type Scope string

const (
	Act     Scope = "act"
	Inspect Scope = "inspect"
)

// Code says why a token was refused.
type Code string

const (
	Unsigned      Code = "unsigned"
	BadToken      Code = "bad_token"
	UnknownKey    Code = "unknown_key"
	BadSignature  Code = "bad_signature"
	WrongAudience Code = "wrong_audience"
	Expired       Code = "expired"
	WrongScope    Code = "wrong_scope"
)

// Codes lists every reason, for counters.
var Codes = []Code{Unsigned, BadToken, UnknownKey, BadSignature, WrongAudience, Expired, WrongScope}

// Error refuses a token.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }

// Verifier accepts the tokens of known keys for one sandbox.
type Verifier struct {
	sandbox string
	keys    map[string]ed25519.PublicKey
	known   cache
}

// NewVerifier takes the keys by their ids; they must not be changed.
func NewVerifier(sandbox string, keys map[string]ed25519.PublicKey) *Verifier {
	return &Verifier{sandbox: sandbox, keys: keys}
}

// Verify returns what the Authorization header's token says, or why it is
// refused. Nothing about the token is judged before its signature except what
// is needed to find the key.
func (v *Verifier) Verify(authorization string, now time.Time, accepts ...Scope) (Claims, *Error) {
	text, found := strings.CutPrefix(authorization, scheme)
	if !found {
		return Claims{}, &Error{Unsigned, "no Rollcage token"}
	}
	claims, known := v.known.find(text)
	if !known {
		var err *Error
		if claims, err = v.authenticate(text); err != nil {
			return Claims{}, err
		}
		v.known.add(text, claims)
	}
	if err := v.admit(claims, now, accepts); err != nil {
		return Claims{}, err
	}
	return claims, nil
}

// authenticate says who signed the token, whatever it is for.
func (v *Verifier) authenticate(text string) (Claims, *Error) {
	payload, signature, err := split(text)
	if err != nil {
		return Claims{}, &Error{BadToken, err.Error()}
	}
	claims, err := parse(payload)
	if err != nil {
		return Claims{}, &Error{BadToken, err.Error()}
	}
	key, known := v.keys[claims.Key]
	if !known {
		return Claims{}, &Error{UnknownKey, "no key of that name"}
	}
	if !ed25519.Verify(key, []byte(domain+payload), signature) {
		return Claims{}, &Error{BadSignature, "not signed by the key it names"}
	}
	return claims, nil
}

func (v *Verifier) admit(claims Claims, now time.Time, accepts []Scope) *Error {
	window := int64(clockWindow / time.Second)
	switch {
	case claims.Audience != v.sandbox:
		return &Error{WrongAudience, "meant for another sandbox"}
	case now.Unix()-claims.Expires > window:
		return &Error{Expired, "has expired"}
	case claims.Issued-now.Unix() > window:
		return &Error{Expired, "was issued in the future"}
	case !slices.Contains(accepts, claims.Scope):
		return &Error{WrongScope, fmt.Sprintf("scope %s does not allow this", claims.Scope)}
	}
	return nil
}

func split(text string) (payload string, signature []byte, err error) {
	if len(text) > maxBytes {
		return "", nil, fmt.Errorf("longer than %d bytes", maxBytes)
	}
	payload, encoded, _ := strings.Cut(text, ".")
	signature, err = decode(encoded)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return "", nil, fmt.Errorf("not of the form payload.signature")
	}
	return payload, signature, nil
}

// ParseKey reads a public key as ROLLCAGE_KEYS holds it.
func ParseKey(text string) (ed25519.PublicKey, error) {
	raw, err := decode(text)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("a public key is %d bytes in base64url", ed25519.PublicKeySize)
	}
	return raw, nil
}

// decode takes one spelling only: the library would skip line breaks and
// ignore stray bits.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, fmt.Errorf("not base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(text)
}
