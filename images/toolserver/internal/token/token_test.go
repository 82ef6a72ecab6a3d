package token

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// vectors is shared with the Python signer; tests/vectors/tokens.py writes it.
const vectors = "../../../../tests/vectors/tokens.json"

type shared struct {
	Sandbox string
	Keys    map[string]string
	Vectors []struct {
		Name          string
		Authorization string
		Now           int64
		Accepts       []Scope
		Code          string
	}
}

func load(t testing.TB) (shared, *Verifier) {
	t.Helper()
	data, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	var s shared
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(s.Sandbox, map[string]ed25519.PublicKey{})
	for id, text := range s.Keys {
		if v.keys[id], err = ParseKey(text); err != nil {
			t.Fatal(err)
		}
	}
	return s, v
}

func TestSharedVectorsHold(t *testing.T) {
	s, v := load(t)
	for _, vector := range s.Vectors {
		t.Run(vector.Name, func(t *testing.T) {
			got := "ok"
			_, err := v.Verify(vector.Authorization, time.Unix(vector.Now, 0), vector.Accepts...)
			if err != nil {
				got = string(err.Code)
			}
			if got != vector.Code {
				t.Fatalf("got %s (%v), want %s", got, err, vector.Code)
			}
		})
	}
}

func TestEveryCodeHasAVector(t *testing.T) {
	s, _ := load(t)
	seen := map[string]bool{}
	for _, vector := range s.Vectors {
		seen[vector.Code] = true
	}
	for _, code := range Codes {
		if !seen[string(code)] {
			t.Errorf("no vector is refused as %s", code)
		}
	}
}

func TestAVerifiedTokenSaysWhatWasSigned(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(nil)
	v := NewVerifier("sbx-1", map[string]ed25519.PublicKey{"k1": private.Public().(ed25519.PublicKey)})
	payload := base64.RawURLEncoding.EncodeToString(
		[]byte(`{"kid":"k1","aud":"sbx-1","rol":"r1","scp":"act","iat":100,"exp":700}`))
	signature := ed25519.Sign(private, []byte(domain+payload))
	header := scheme + payload + "." + base64.RawURLEncoding.EncodeToString(signature)

	got, err := v.Verify(header, time.Unix(200, 0), Act)

	want := Claims{Key: "k1", Audience: "sbx-1", Rollout: "r1", Scope: Act, Issued: 100, Expires: 700}
	if err != nil || got != want {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestAKeyOfAnotherShapeIsRefused(t *testing.T) {
	for _, text := range []string{"", "AAAA", strings.Repeat("!", 43), strings.Repeat("A", 44)} {
		if _, err := ParseKey(text); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

// Without a private key nothing that fuzzing finds may pass, whatever it is.
func FuzzNobodyGuessesAToken(f *testing.F) {
	s, v := load(f)
	known := map[string]bool{}
	for _, vector := range s.Vectors {
		f.Add(vector.Authorization, vector.Now)
		known[vector.Authorization] = true
	}
	f.Fuzz(func(t *testing.T, header string, now int64) {
		claims, err := v.Verify(header, time.Unix(now, 0), Act, Inspect)
		if err == nil && !known[header] {
			t.Fatalf("accepted %q as %+v", header, claims)
		}
	})
}

// signed makes a token of its own for each number.
func signed(private ed25519.PrivateKey, rollout string, issued int64) string {
	claims := fmt.Sprintf(`{"kid":"k1","aud":"sbx-1","rol":%q,"scp":"act","iat":%d,"exp":%d}`, rollout, issued, issued+600)
	payload := base64.RawURLEncoding.EncodeToString([]byte(claims))
	return scheme + payload + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(private, []byte(domain+payload)))
}

func TestAKnownTokenIsStillJudgedByTimeAndScope(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(nil)
	v := NewVerifier("sbx-1", map[string]ed25519.PublicKey{"k1": private.Public().(ed25519.PublicKey)})
	header := signed(private, "r1", 100_000)
	cases := []struct {
		name   string
		now    int64
		accept Scope
		code   Code
	}{
		{"it is good", 100_100, Act, ""},
		{"it is good again", 100_101, Act, ""},
		{"its scope does not fit here", 100_102, Inspect, WrongScope},
		{"its time is over", 110_000, Act, Expired},
		{"its time has not come", 90_000, Act, Expired},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			claims, err := v.Verify(header, time.Unix(test.now, 0), test.accept)
			switch {
			case err == nil && test.code == "" && claims.Rollout == "r1":
			case err != nil && err.Code == test.code:
			default:
				t.Errorf("got %+v, %v", claims, err)
			}
		})
	}
}

func TestOnlyTheExactBytesOfATokenAreKnown(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(nil)
	v := NewVerifier("sbx-1", map[string]ed25519.PublicKey{"k1": private.Public().(ed25519.PublicKey)})
	header := signed(private, "r1", 100)
	v.Verify(header, time.Unix(200, 0), Act)
	for at := len(scheme); at < len(header); at++ {
		changed := []byte(header)
		changed[at] ^= 1
		if _, err := v.Verify(string(changed), time.Unix(200, 0), Act); err == nil {
			t.Fatalf("accepted with byte %d changed", at)
		}
	}
}

func TestTheTokensKnownAreBounded(t *testing.T) {
	_, private, _ := ed25519.GenerateKey(nil)
	v := NewVerifier("sbx-1", map[string]ed25519.PublicKey{"k1": private.Public().(ed25519.PublicKey)})
	var headers []string
	for n := range 3 * remembered {
		headers = append(headers, signed(private, fmt.Sprintf("r%d", n), 100))
	}
	for range 2 {
		for n, header := range headers {
			claims, err := v.Verify(header, time.Unix(200, 0), Act)
			if err != nil || claims.Rollout != fmt.Sprintf("r%d", n) {
				t.Fatalf("%d: got %+v, %v", n, claims, err)
			}
		}
	}
}
