// Package schema checks a call's arguments against the JSON schema of its
// tool. It knows the part of JSON Schema that tool definitions use, refuses
// the rest when a tool is declared rather than ignoring it when a tool is
// called, and words its findings for a model to read.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"rollcage.dev/toolserver/internal/strictjson"
)

// Schema is a parsed schema.
type Schema struct {
	never      bool // the schema "false"
	types      []string
	properties map[string]*Schema
	required   []string
	additional *Schema // nil: anything
	enum       []any
	items      *Schema
	anyOf      []*Schema
	pattern    *regexp.Regexp

	minimum, maximum     *float64
	minLength, maxLength *int
	minItems, maxItems   *int
}

// annotations change nothing about what is valid.
var annotations = []string{
	"$comment", "$id", "$schema", "default", "deprecated", "description", "examples", "format", "readOnly",
	"title", "writeOnly",
}

var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Parse reads a schema. What it does not support is an error.
func Parse(raw json.RawMessage) (*Schema, error) {
	value, err := strictjson.Value(raw)
	if err != nil {
		return nil, err
	}
	return parse(value)
}

func parse(value any) (*Schema, error) {
	switch value := value.(type) {
	case bool:
		return &Schema{never: !value}, nil
	case map[string]any:
		s := &Schema{}
		for _, keyword := range slices.Sorted(maps.Keys(value)) {
			if err := s.set(keyword, value[keyword]); err != nil {
				return nil, fmt.Errorf("%s: %w", keyword, err)
			}
		}
		return s, nil
	}
	return nil, errors.New("a schema is an object, true or false")
}

func (s *Schema) set(keyword string, value any) (err error) {
	switch keyword {
	case "type":
		s.types, err = parseTypes(value)
	case "properties":
		s.properties, err = parseProperties(value)
	case "required":
		s.required, err = texts(value)
	case "additionalProperties":
		s.additional, err = parse(value)
	case "enum":
		s.enum, err = list(value)
	case "const":
		s.enum = []any{value}
	case "items":
		s.items, err = parse(value)
	case "anyOf":
		s.anyOf, err = parseAll(value)
	case "pattern":
		s.pattern, err = parsePattern(value)
	case "minimum":
		s.minimum, err = number(value)
	case "maximum":
		s.maximum, err = number(value)
	case "minLength":
		s.minLength, err = count(value)
	case "maxLength":
		s.maxLength, err = count(value)
	case "minItems":
		s.minItems, err = count(value)
	case "maxItems":
		s.maxItems, err = count(value)
	default:
		if !slices.Contains(annotations, keyword) {
			return errors.New("this keyword is not supported")
		}
	}
	return err
}

func parseTypes(value any) ([]string, error) {
	if name, single := value.(string); single {
		value = []any{name}
	}
	names, err := texts(value)
	if err != nil || len(names) == 0 {
		return nil, errors.New("a type is a name or a list of names")
	}
	for _, name := range names {
		if !slices.Contains(typeNames, name) {
			return nil, fmt.Errorf("there is no type %q", name)
		}
	}
	return names, nil
}

func parseProperties(value any) (map[string]*Schema, error) {
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("not an object")
	}
	properties := map[string]*Schema{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, err := parse(fields[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		properties[name] = property
	}
	return properties, nil
}

func parseAll(value any) ([]*Schema, error) {
	choices, err := list(value)
	if err != nil {
		return nil, err
	}
	var all []*Schema
	for _, choice := range choices {
		s, err := parse(choice)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func parsePattern(value any) (*regexp.Regexp, error) {
	text, ok := value.(string)
	if !ok {
		return nil, errors.New("not a text")
	}
	return regexp.Compile(text)
}

func list(value any) ([]any, error) {
	items, ok := value.([]any)
	if !ok || len(items) == 0 {
		return nil, errors.New("not a list with something in it")
	}
	return items, nil
}

func texts(value any) ([]string, error) {
	items, ok := value.([]any)
	if !ok {
		return nil, errors.New("not a list of texts")
	}
	names := []string{}
	for _, item := range items {
		name, ok := item.(string)
		if !ok {
			return nil, errors.New("not a list of texts")
		}
		names = append(names, name)
	}
	return names, nil
}

func number(value any) (*float64, error) {
	literal, _ := value.(json.Number)
	n, err := literal.Float64()
	if err != nil {
		return nil, errors.New("not a number")
	}
	return &n, nil
}

func count(value any) (*int, error) {
	literal, _ := value.(json.Number)
	n, err := literal.Int64()
	if err != nil || n < 0 || n > 1<<31-1 {
		return nil, errors.New("not a count")
	}
	c := int(n)
	return &c, nil
}
