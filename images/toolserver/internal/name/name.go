// Package name checks identifiers that come from outside. By hand: a regular
// expression with a bound of 200 is compiled into hundreds of instructions and
// takes microseconds to match, on the way of every call.
package name

import "strconv"

// Pattern is a set of bytes and a greatest length; the least is one.
type Pattern struct {
	class   string
	most    int
	allowed [256]bool
}

// New takes the class as a regular expression's brackets would hold it: ranges
// and single bytes, a hyphen last.
func New(class string, most int) *Pattern {
	p := &Pattern{class: class, most: most}
	for i := 0; i < len(class); i++ {
		first, last := class[i], class[i]
		if i+2 < len(class) && class[i+1] == '-' {
			last = class[i+2]
			i += 2
		}
		for c := int(first); c <= int(last); c++ {
			p.allowed[c] = true
		}
	}
	return p
}

// MatchString says whether all of the text fits.
func (p *Pattern) MatchString(text string) bool {
	if len(text) == 0 || len(text) > p.most {
		return false
	}
	for i := range len(text) {
		if !p.allowed[text[i]] {
			return false
		}
	}
	return true
}

// String is the pattern as a regular expression, for people.
func (p *Pattern) String() string {
	return "^[" + p.class + "]{1," + strconv.Itoa(p.most) + "}$"
}
