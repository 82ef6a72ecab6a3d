package journal

import (
	"bytes"
	"testing"
)

func hash(t *testing.T, tool, arguments string) Fingerprint {
	t.Helper()
	_, canonical, err := Canonical([]byte(arguments))
	if err != nil {
		t.Fatal(err)
	}
	return FingerprintOf(tool, canonical)
}

func TestSpellingDoesNotMatter(t *testing.T) {
	want := hash(t, "shell", `{"a":[1,"é"],"b":{"c":null,"d":true}}`)
	for _, spelling := range []string{
		`{"b":{"d":true,"c":null},"a":[1,"é"]}`,
		" {\n\"a\" : [ 1 , \"\\u00e9\" ],\t\"b\":{\"c\":null,\"d\":true}}\r\n",
	} {
		if hash(t, "shell", spelling) != want {
			t.Errorf("%s has another fingerprint", spelling)
		}
	}
}

func TestContentMatters(t *testing.T) {
	calls := [][2]string{
		{"shell", `{}`}, {"shell", `[]`}, {"shell", `null`}, {"shell", `{"a":1}`}, {"shell", `{"a":1.0}`},
		{"shell", `{"a":"1"}`}, {"shell", `{"a":[1]}`}, {"shell", `{"A":1}`}, {"list", `{}`}, {"shell{", `}`},
		{"shell", `{"a":"x y"}`}, {"shell", `{"a":"x  y"}`}, {"shell", `{"a":9007199254740993}`}, {"shell", `{"a":9007199254740992}`},
	}
	seen := map[Fingerprint][2]string{}
	for _, call := range calls {
		canonical := []byte(call[1])
		if _, spelled, err := Canonical(canonical); err == nil {
			canonical = spelled
		}
		print := FingerprintOf(call[0], canonical)
		if other, twice := seen[print]; twice {
			t.Errorf("%v and %v have one fingerprint", call, other)
		}
		seen[print] = call
	}
}

func FuzzCanonicalIsAFixedPoint(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":{"d":[],"c":1e3}}`, `"\ud800"`, `[1.0,-0,1E+2]`, `{"":{"":0}}`, `"<&>\u2028"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, once, err := Canonical(data)
		if err != nil {
			return
		}
		_, twice, err := Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q, %v", once, twice, err)
		}
	})
}
