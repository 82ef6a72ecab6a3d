package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxShown keeps a wrong value recognizable without repeating a whole file.
const maxShown = 60

// maxDescribed bounds a declared tool's argument list; a model that needs
// more can ask for the definition.
const maxDescribed = 40

// Describe lists the arguments: name, type, whether required.
func (s *Schema) Describe() string {
	names := slices.Sorted(maps.Keys(s.properties))
	slices.SortStableFunc(names, func(a, b string) int { return s.rank(a) - s.rank(b) })
	if len(names) == 0 {
		return "none are declared"
	}
	var parts []string
	for i, name := range names {
		if i == maxDescribed {
			parts = append(parts, fmt.Sprintf("and %d more", len(names)-i))
			break
		}
		kind := s.properties[name].kind()
		if s.rank(name) == 0 {
			kind += ", required"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, kind))
	}
	return strings.Join(parts, ", ")
}

// rank puts required arguments first.
func (s *Schema) rank(name string) int {
	if slices.Contains(s.required, name) {
		return 0
	}
	return 1
}

func (s *Schema) kind() string {
	switch {
	case s.enum != nil:
		return choices(s.enum)
	case len(s.types) > 0:
		return strings.Join(s.types, " or ")
	case s.anyOf != nil:
		return s.anyOfText()
	}
	return "anything"
}

func (s *Schema) typeText() string {
	words := make([]string, len(s.types))
	for i, name := range s.types {
		words[i] = article(name)
	}
	return strings.Join(words, " or ")
}

func (s *Schema) anyOfText() string {
	var words []string
	for _, choice := range s.anyOf {
		if word := choice.kind(); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

func article(name string) string {
	switch name {
	case "null":
		return "null"
	case "array", "integer", "object":
		return "an " + name
	}
	return "a " + name
}

func choices(values []any) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = show(value)
	}
	return strings.Join(words, " or ")
}

// show names a value: as JSON when it is short, else by its beginning.
func show(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "an array"
	}
	encoded, _ := json.Marshal(value)
	return cut(string(encoded))
}

func quote(text string) string {
	encoded, _ := json.Marshal(text)
	return cut(string(encoded))
}

func cut(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
