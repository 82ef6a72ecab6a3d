package strictjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestValueKeepsNumbersAsWritten(t *testing.T) {
	got, err := Value([]byte(` {"a":[1.0, 1e400, "x", null, true, {}]} `))
	want := map[string]any{"a": []any{json.Number("1.0"), json.Number("1e400"), "x", nil, true, map[string]any{}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %#v, %v", got, err)
	}
}

func TestWhatTheStandardDecoderForgivesIsRefused(t *testing.T) {
	cases := map[string]string{
		"nothing":                        ``,
		"white space":                    ` `,
		"a second value":                 `{} {}`,
		"a closing bracket too many":     `[]]`,
		"a name twice":                   `{"a":1,"a":1}`,
		"a name twice, once as escape":   `{"a":1,"\u0061":1}`,
		"a name twice, deep inside":      `[{"x":{"a":1,"a":2}}]`,
		"invalid UTF-8":                  "\"\xff\"",
		"a comma too many":               `[1,]`,
		"a byte order mark":              "\ufeff{}",
		"NaN":                            `NaN`,
		"a control character in a text":  "\"\x01\"",
		"nesting without end":            strings.Repeat("[", 100000) + strings.Repeat("]", 100000),
		"nesting a little too deep":      strings.Repeat("[", 70) + strings.Repeat("]", 70),
		"an object that does not finish": `{"a":`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := Value([]byte(text)); err == nil {
				t.Fatalf("accepted as %#v", got)
			}
		})
	}
}

func TestFieldsAreNamedExactly(t *testing.T) {
	if _, err := Fields([]byte(`{"ROL":1}`), "rol"); err == nil {
		t.Fatal("another case was accepted")
	}
	if _, err := Fields([]byte(`null`), "rol"); err == nil {
		t.Fatal("null was accepted as an object")
	}
	if _, err := Fields([]byte(`{"rol":1,"r\u006fl":1}`), "rol"); err == nil {
		t.Fatal("a field was accepted twice")
	}
	got, err := Fields([]byte(`{"rol": 1}`), "rol", "aud")
	if err != nil || string(got["rol"]) != "1" {
		t.Fatalf("got %v, %v", got, err)
	}
}

func FuzzValueAgreesWithTheStandardDecoder(f *testing.F) {
	for _, seed := range []string{`{}`, `[1,2,{"a":null}]`, `{"a":1,"a":2}`, `"\ud800"`, `1e9`, `[[]`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Value(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted what is not JSON")
		}
		dec := json.NewDecoder(strings.NewReader(string(data)))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil {
			t.Fatalf("accepted what the standard library refuses: %v", err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

func FuzzFieldsAgreeWithTheStandardDecoder(f *testing.F) {
	for _, seed := range []string{`{"a":1,"b":{"c":["\"}",{}]}}`, `{"a":"\\","b":-1e9 }`, `{ }`, `{"a":1,"a":2}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Fields(data, "a", "b", "")
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("accepted what the standard library refuses: %v", err)
		}
		if len(got) != len(want) || (len(got) > 0 && !reflect.DeepEqual(got, want)) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}
