// Package strictjson reads JSON the way a security check needs it: one value,
// valid UTF-8, no name twice, bounded depth. The standard decoder forgives all
// of these, and two readers that forgive differently disagree about what was
// signed or what was run.
//
// The standard library judges the syntax; the reader here only has to take
// valid text apart, which keeps it small and makes it cheap on large calls.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// maxDepth is far above any real argument and far below what costs anything.
const maxDepth = 64

var (
	errSyntax = errors.New("not valid JSON")
	errDepth  = fmt.Errorf("nested more than %d levels deep", maxDepth)
)

// Value decodes data into maps, slices, strings, json.Number, bool and nil.
func Value(data []byte) (any, error) {
	if err := check(data); err != nil {
		return nil, err
	}
	r := reader{data: data}
	return r.value(0)
}

// Fields takes an object apart and leaves its values as they are, unjudged but
// for syntax; they share data's memory. Names are compared exactly: the
// standard library would take "ROL" for "rol".
func Fields(data []byte, allowed ...string) (map[string]json.RawMessage, error) {
	if err := check(data); err != nil {
		return nil, err
	}
	r := reader{data: data}
	if r.next() != '{' {
		return nil, errors.New("not a JSON object")
	}
	fields := map[string]json.RawMessage{}
	err := r.members(func(name string) error {
		if _, twice := fields[name]; twice {
			return fmt.Errorf("the name %q stands twice", name)
		}
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("unknown field %q", name)
		}
		r.next()
		start := r.at
		r.skip()
		fields[name] = data[start:r.at]
		return nil
	})
	return fields, err
}

// Into decodes data into a struct and refuses fields that it does not have.
func Into(data []byte, target any) error {
	if _, err := Value(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(target)
}

func check(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("not valid UTF-8")
	}
	if !json.Valid(data) {
		return errSyntax
	}
	return nil
}
