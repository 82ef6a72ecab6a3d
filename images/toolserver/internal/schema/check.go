package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxProblems: a model repairs a few things at a time, and the text must stay short.
const maxProblems = 5

// Check returns what is wrong with a value as strictjson.Value decodes it;
// nothing means that it is valid.
func (s *Schema) Check(value any) []string {
	c := checker{}
	c.check(s, "", value)
	return c.problems
}

// Settle takes out of a value what is given as null although it may be left
// out and null is no value of its own, and reports whether there was any.
// Models that must name every argument, as strict trainers want it, say "none"
// that way; refusing it would be taken for the model's mistake.
func (s *Schema) Settle(value any) bool {
	fields, isObject := value.(map[string]any)
	if !isObject {
		return false
	}
	settled := false
	for name, property := range s.properties {
		given, present := fields[name]
		switch {
		case !present:
		case given != nil:
			settled = property.Settle(given) || settled
		case !slices.Contains(s.required, name) && len(property.Check(nil)) > 0:
			delete(fields, name)
			settled = true
		}
	}
	return settled
}

type checker struct{ problems []string }

func (c *checker) add(path, format string, args ...any) {
	if len(c.problems) >= maxProblems {
		return
	}
	c.problems = append(c.problems, subject(path)+" "+fmt.Sprintf(format, args...))
}

func (c *checker) check(s *Schema, path string, value any) {
	if len(c.problems) >= maxProblems {
		return
	}
	if s.never {
		c.add(path, "is not allowed")
		return
	}
	if len(s.types) > 0 && !slices.ContainsFunc(s.types, func(name string) bool { return is(value, name) }) {
		c.add(path, "must be %s, not %s", s.typeText(), show(value))
		return
	}
	if s.enum != nil && !slices.ContainsFunc(s.enum, func(allowed any) bool { return equal(allowed, value) }) {
		c.add(path, "must be %s, not %s", choices(s.enum), show(value))
		return
	}
	if s.anyOf != nil && !slices.ContainsFunc(s.anyOf, func(o *Schema) bool { return len(o.Check(value)) == 0 }) {
		c.add(path, "must be %s, not %s", s.anyOfText(), show(value))
		return
	}
	switch value := value.(type) {
	case map[string]any:
		c.object(s, path, value)
	case []any:
		c.array(s, path, value)
	case string:
		c.text(s, path, value)
	case json.Number:
		c.number(s, path, value)
	}
}

func (c *checker) object(s *Schema, path string, fields map[string]any) {
	for _, name := range s.required {
		if _, present := fields[name]; !present {
			c.add(join(path, name), "is required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch property := s.properties[name]; {
		case property != nil:
			c.check(property, join(path, name), fields[name])
		case s.additional != nil && s.additional.never:
			c.add(join(path, name), "is not an argument here")
		case s.additional != nil:
			c.check(s.additional, join(path, name), fields[name])
		}
	}
}

func (c *checker) array(s *Schema, path string, items []any) {
	if s.minItems != nil && len(items) < *s.minItems {
		c.add(path, "must have at least %d items, not %d", *s.minItems, len(items))
	}
	if s.maxItems != nil && len(items) > *s.maxItems {
		c.add(path, "must have at most %d items, not %d", *s.maxItems, len(items))
	}
	if s.items == nil {
		return
	}
	for i, item := range items {
		c.check(s.items, fmt.Sprintf("%s[%d]", path, i), item)
	}
}

func (c *checker) text(s *Schema, path, text string) {
	length := utf8.RuneCountInString(text)
	if s.minLength != nil && length < *s.minLength {
		c.add(path, "must have at least %d characters, not %d", *s.minLength, length)
	}
	if s.maxLength != nil && length > *s.maxLength {
		c.add(path, "must have at most %d characters, not %d", *s.maxLength, length)
	}
	if s.pattern != nil && !s.pattern.MatchString(text) {
		c.add(path, "must match the pattern %s", s.pattern)
	}
}

func (c *checker) number(s *Schema, path string, literal json.Number) {
	// Out of range is an infinity, which compares as it should.
	n, _ := literal.Float64()
	if s.minimum != nil && n < *s.minimum {
		c.add(path, "must be at least %v, not %s", *s.minimum, show(literal))
	}
	if s.maximum != nil && n > *s.maximum {
		c.add(path, "must be at most %v, not %s", *s.maximum, show(literal))
	}
}

func is(value any, name string) bool {
	switch value := value.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		return name == "number" || name == "integer" && isInteger(value)
	}
	return false
}

// isInteger takes what a program can read into an integer: JSON Schema would
// also allow 1.0, which most programs then refuse with a worse message.
func isInteger(literal json.Number) bool {
	_, err := literal.Int64()
	return err == nil
}

func equal(a, b any) bool {
	x, xNumber := a.(json.Number)
	y, yNumber := b.(json.Number)
	if xNumber && yNumber {
		n, _ := x.Float64()
		m, _ := y.Float64()
		return x == y || n == m
	}
	return reflect.DeepEqual(a, b)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func subject(path string) string {
	if path == "" {
		return "the arguments"
	}
	return quote(strings.TrimPrefix(path, "."))
}
