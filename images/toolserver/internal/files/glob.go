package files

import (
	"fmt"
	"regexp"
	"strings"
)

// Nesting deeper than this is not meant.
const braceMax = 8

// glob is a pattern of paths: * and ? within a name, ** across directories,
// [a-z], {a,b}, and \ for a character itself. A pattern without a slash is
// matched against the name alone, at any depth. It becomes a regular expression
// without backtracking, so no pattern can take for ever.
type glob struct{ *regexp.Regexp }

func newGlob(pattern string) (glob, error) {
	rest := strings.TrimPrefix(pattern, "./")
	if strings.HasSuffix(rest, "/") {
		rest += "**"
	}
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	if !strings.Contains(rest, "/") {
		b.WriteString(`(?:.*/)?`)
	}
	rest = strings.TrimPrefix(rest, "/")
	depth := 0
	for rest != "" {
		var err error
		if rest, err = translate(&b, rest, &depth); err != nil {
			return glob{}, fmt.Errorf("%w in glob %q", err, pattern)
		}
	}
	if depth > 0 {
		return glob{}, fmt.Errorf("{ without } in glob %q", pattern)
	}
	b.WriteString(`\z`)
	compiled, err := regexp.Compile(b.String())
	if err != nil {
		return glob{}, fmt.Errorf("bad glob %q", pattern)
	}
	return glob{compiled}, nil
}

// translate turns the first piece of a pattern into a regular expression.
func translate(b *strings.Builder, rest string, depth *int) (string, error) {
	switch {
	case strings.HasPrefix(rest, "**/"):
		b.WriteString(`(?:.*/)?`)
		return rest[3:], nil
	case strings.HasPrefix(rest, "**"):
		b.WriteString(`.*`)
		return rest[2:], nil
	case rest[0] == '*':
		b.WriteString(`[^/]*`)
	case rest[0] == '?':
		b.WriteString(`[^/]`)
	case rest[0] == '[':
		return translateClass(b, rest)
	case rest[0] == '{':
		if *depth++; *depth > braceMax {
			return "", fmt.Errorf("too many {")
		}
		b.WriteString(`(?:`)
	case rest[0] == '}' && *depth > 0:
		*depth--
		b.WriteString(`)`)
	case rest[0] == ',' && *depth > 0:
		b.WriteString(`|`)
	case rest[0] == '\\' && len(rest) > 1:
		return literal(b, rest[1:]), nil
	default:
		return literal(b, rest), nil
	}
	return rest[1:], nil
}

func literal(b *strings.Builder, rest string) string {
	for i := range rest {
		if i > 0 {
			b.WriteString(regexp.QuoteMeta(rest[:i]))
			return rest[i:]
		}
	}
	b.WriteString(regexp.QuoteMeta(rest))
	return ""
}

// translateClass handles [abc], [a-z] and [!a-z]; none of them matches a slash.
func translateClass(b *strings.Builder, rest string) (string, error) {
	body := rest[1:]
	negated := strings.HasPrefix(body, "!") || strings.HasPrefix(body, "^")
	if negated {
		body = body[1:]
	}
	// A ] in the first place means itself.
	end := strings.IndexByte(body[min(1, len(body)):], ']') + min(1, len(body))
	if end < 1 || body[end] != ']' {
		return "", fmt.Errorf("[ without ]")
	}
	class := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `/`, ``).Replace(body[:end])
	if class == "" {
		return "", fmt.Errorf("an empty [ ]")
	}
	if negated {
		b.WriteString("[^/" + class + "]")
	} else {
		b.WriteString("[" + class + "]")
	}
	return body[end+1:], nil
}

type globs []glob

func newGlobs(patterns []string) (globs, error) {
	var all globs
	for _, pattern := range patterns {
		one, err := newGlob(pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (g globs) match(path string) bool {
	for _, one := range g {
		if one.MatchString(path) {
			return true
		}
	}
	return false
}
