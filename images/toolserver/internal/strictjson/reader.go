package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// reader takes apart text that is known to be valid JSON.
type reader struct {
	data []byte
	at   int
}

// next skips white space and returns the byte after it.
func (r *reader) next() byte {
	for {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c
		}
	}
}

func (r *reader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch r.next() {
	case '{':
		return r.object(depth)
	case '[':
		return r.array(depth)
	case '"':
		return r.text(), nil
	}
	switch word := r.word(); word {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return json.Number(word), nil
	}
}

func (r *reader) object(depth int) (any, error) {
	fields := map[string]any{}
	err := r.members(func(name string) (err error) {
		if _, twice := fields[name]; twice {
			return fmt.Errorf("the name %q stands twice in one object", name)
		}
		fields[name], err = r.value(depth + 1)
		return err
	})
	return fields, err
}

// members walks over an object from its brace; each must read one value.
func (r *reader) members(each func(name string) error) error {
	r.at++
	for r.next() != '}' {
		name := r.text()
		r.next()
		r.at++ // the colon
		if err := each(name); err != nil {
			return err
		}
		if r.next() == ',' {
			r.at++
		}
	}
	r.at++
	return nil
}

func (r *reader) array(depth int) (any, error) {
	items := []any{}
	r.at++
	for r.next() != ']' {
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if r.next() == ',' {
			r.at++
		}
	}
	r.at++
	return items, nil
}

func (r *reader) text() string {
	start := r.at
	r.skipText()
	quoted := r.data[start:r.at]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		panic("strictjson: valid text has an invalid string: " + err.Error())
	}
	return text
}

func (r *reader) word() string {
	start := r.at
	for r.at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,]}"), r.data[r.at]) < 0 {
		r.at++
	}
	return string(r.data[start:r.at])
}

// skip passes one value without looking into it.
func (r *reader) skip() {
	for depth := 0; ; {
		switch r.next() {
		case '{', '[':
			depth++
			r.at++
		case '}', ']':
			depth--
			r.at++
		case ',', ':':
			r.at++
			continue
		case '"':
			r.skipText()
		default:
			r.word()
		}
		if depth == 0 {
			return
		}
	}
}

func (r *reader) skipText() {
	r.at++
	for {
		r.at += bytes.IndexByte(r.data[r.at:], '"')
		escapes := 0
		for r.data[r.at-1-escapes] == '\\' {
			escapes++
		}
		r.at++
		if escapes%2 == 0 {
			return
		}
	}
}
