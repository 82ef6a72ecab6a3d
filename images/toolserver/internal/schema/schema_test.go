package schema

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rollcage.dev/toolserver/internal/strictjson"
)

const shell = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "description": "what to run"},
    "timeout_ms": {"type": "integer", "minimum": 1, "maximum": 540000},
    "env": {"type": "object", "additionalProperties": {"type": "string"}},
    "streams": {"enum": ["combined", "separate"]},
    "paths": {"type": "array", "items": {"type": "string", "pattern": "^/"}, "minItems": 1, "maxItems": 2},
    "when": {"type": ["string", "null"], "maxLength": 3},
    "either": {"anyOf": [{"type": "integer"}, {"const": "all"}]}
  },
  "required": ["command"],
  "additionalProperties": false
}`

func check(t *testing.T, schema, value string) []string {
	t.Helper()
	s, err := Parse(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := strictjson.Value([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return s.Check(decoded)
}

func TestValidArgumentsPass(t *testing.T) {
	for _, arguments := range []string{
		`{"command":"ls"}`,
		`{"command":"ls","timeout_ms":1,"env":{"A":"b"},"streams":"separate","paths":["/a","/b"]}`,
		`{"command":"ls","when":null,"either":7}`,
		`{"command":"ls","when":"äöü","either":"all"}`,
	} {
		if problems := check(t, shell, arguments); problems != nil {
			t.Errorf("%s: %q", arguments, problems)
		}
	}
}

func TestNullForWhatMayBeLeftOutIsLeftOut(t *testing.T) {
	const nested = `{"type":"object","properties":{
		"inner":{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}},"required":["s"]},
		"any":{}}}`
	cases := []struct{ name, schema, value, want string }{
		{"an optional argument", shell, `{"command":"ls","timeout_ms":null}`, `{"command":"ls"}`},
		{"one with choices", shell, `{"command":"ls","streams":null}`, `{"command":"ls"}`},
		{"one with several schemas", shell, `{"command":"ls","either":null}`, `{"command":"ls"}`},
		{"not one whose value null is", shell, `{"command":"ls","when":null}`, `{"command":"ls","when":null}`},
		{"not one that must be there", shell, `{"command":null}`, `{"command":null}`},
		{"not one that nobody knows", shell, `{"cmd":null,"command":"ls"}`, `{"cmd":null,"command":"ls"}`},
		{"not inside a free object", shell, `{"command":"ls","env":{"A":null}}`, `{"command":"ls","env":{"A":null}}`},
		{"inside an argument", nested, `{"inner":{"n":null,"s":null}}`, `{"inner":{"s":null}}`},
		{"not where anything goes", nested, `{"any":null}`, `{"any":null}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			value, err := strictjson.Value([]byte(c.value))
			if err != nil {
				t.Fatal(err)
			}
			changed := s.Settle(value)
			got, _ := json.Marshal(value)
			if string(got) != c.want || changed != (c.value != c.want) {
				t.Fatalf("got %s, changed: %t", got, changed)
			}
		})
	}
}

func TestProblemsNameWhatIsAllowed(t *testing.T) {
	cases := []struct{ name, arguments, want string }{
		{"a missing argument", `{}`, `"command" is required`},
		{"an unknown argument", `{"command":"x","cmd":1}`, `"cmd" is not an argument here`},
		{"the wrong type", `{"command":["ls"]}`, `"command" must be a string, not an array`},
		{"a number as text", `{"command":"x","timeout_ms":"5"}`, `"timeout_ms" must be an integer, not "5"`},
		{"a fraction for an integer", `{"command":"x","timeout_ms":1.5}`, `"timeout_ms" must be an integer, not 1.5`},
		{"an integer written as a fraction", `{"command":"x","timeout_ms":1.0}`, `"timeout_ms" must be an integer, not 1.0`},
		{"an integer beyond 64 bits", `{"command":"x","timeout_ms":99999999999999999999}`, `"timeout_ms" must be an integer, not 99999999999999999999`},
		{"too small", `{"command":"x","timeout_ms":0}`, `"timeout_ms" must be at least 1, not 0`},
		{"too large", `{"command":"x","timeout_ms":540001}`, `"timeout_ms" must be at most 540000, not 540001`},
		{"too short", `{"command":""}`, `"command" must have at least 1 characters, not 0`},
		{"too long, in characters", `{"command":"x","when":"äöüß"}`, `"when" must have at most 3 characters, not 4`},
		{"none of a list of types", `{"command":"x","when":1}`, `"when" must be a string or null, not 1`},
		{"not one of the choices", `{"command":"x","streams":"both"}`, `"streams" must be "combined" or "separate", not "both"`},
		{"a value inside a free object", `{"command":"x","env":{"A":1}}`, `"env.A" must be a string, not 1`},
		{"an item that does not match", `{"command":"x","paths":["a"]}`, `"paths[0]" must match the pattern ^/`},
		{"too few items", `{"command":"x","paths":[]}`, `"paths" must have at least 1 items, not 0`},
		{"too many items", `{"command":"x","paths":["/","/","/"]}`, `"paths" must have at most 2 items, not 3`},
		{"none of several schemas", `{"command":"x","either":"some"}`, `"either" must be integer or "all", not "some"`},
		{"arguments that are no object", `"ls"`, `the arguments must be an object, not "ls"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := check(t, shell, c.arguments); !slices.Equal(got, []string{c.want}) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestALongValueIsCutBetweenCharacters(t *testing.T) {
	got := check(t, `{"type":"integer"}`, `"`+strings.Repeat("ä", 1000)+`"`)
	if len(got) != 1 || len(got[0]) > 120 || !strings.HasSuffix(got[0], "ä…") {
		t.Fatalf("got %q", got)
	}
}

func TestManyProblemsStayAShortText(t *testing.T) {
	got := check(t, `{"items":{"type":"string"}}`, `[`+strings.Repeat("1,", 10000)+`1]`)
	if len(got) != maxProblems {
		t.Fatalf("%d problems", len(got))
	}
}

func TestNumbersAreEqualByValue(t *testing.T) {
	if problems := check(t, `{"enum":[1]}`, `1.0`); problems != nil {
		t.Fatal(problems)
	}
}

func TestDescribeListsRequiredArgumentsFirst(t *testing.T) {
	s, _ := Parse(json.RawMessage(shell))
	want := `command (string, required), either (integer or "all"), env (object), paths (array), ` +
		`streams ("combined" or "separate"), timeout_ms (integer), when (string or null)`
	if got := s.Describe(); got != want {
		t.Fatalf("got %s", got)
	}
}

func TestASchemaThatWouldBeIgnoredIsRefused(t *testing.T) {
	cases := map[string]string{
		"an unsupported keyword":      `{"type":"object","oneOf":[]}`,
		"a reference":                 `{"$ref":"#/x"}`,
		"a misspelled keyword":        `{"requierd":["a"]}`,
		"one deep inside":             `{"properties":{"a":{"items":{"not":{}}}}}`,
		"an unknown type":             `{"type":"text"}`,
		"a list of no types":          `{"type":[]}`,
		"a number as schema":          `7`,
		"a pattern that is none":      `{"pattern":"("}`,
		"a negative length":           `{"minLength":-1}`,
		"a minimum that is text":      `{"minimum":"1"}`,
		"required that is one text":   `{"required":"a"}`,
		"an empty enum":               `{"enum":[]}`,
		"properties that are a list":  `{"properties":[]}`,
		"a keyword that stands twice": `{"type":"object","type":"object"}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(json.RawMessage(text)); err == nil {
				t.Fatal("accepted")
			}
		})
	}
}

func TestAnnotationsAreAccepted(t *testing.T) {
	text := `{"$schema":"x","title":"t","description":"d","default":1,"examples":[1],"format":"uri"}`
	if problems := check(t, text, `"anything"`); problems != nil {
		t.Fatal(problems)
	}
}

func FuzzCheckNeverPanicsAndStaysShort(f *testing.F) {
	f.Add(shell, `{"command":1,"env":{"A":[]}}`)
	f.Add(`{"anyOf":[{"type":"null"},false]}`, `[]`)
	f.Add(`{"enum":[{"a":[1]}],"pattern":"^a+$"}`, `"aaaa"`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		s, err := Parse(json.RawMessage(schema))
		if err != nil {
			return
		}
		decoded, err := strictjson.Value([]byte(value))
		if err != nil {
			return
		}
		if problems := s.Check(decoded); len(problems) > maxProblems {
			t.Fatalf("%d problems", len(problems))
		}
		s.Describe()
	})
}
