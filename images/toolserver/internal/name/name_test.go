package name

import (
	"regexp"
	"strings"
	"testing"
)

func TestAPatternMeansWhatItsTextSays(t *testing.T) {
	patterns := []*Pattern{
		New("A-Za-z0-9_.:-", 200), New("A-Za-z0-9_.:/-", 253), New("A-Za-z0-9_.-", 64), New("a-z_", 32), New("A-Za-z0-9_-", 64),
	}
	texts := []string{"", "a", "-", "--", "é", "a b", "a\n", "\n", "a/b", "A.Z:0_9-"}
	for length := range 260 {
		texts = append(texts, strings.Repeat("x", length))
	}
	for c := range 256 {
		texts = append(texts, string([]byte{byte(c)}), "a"+string([]byte{byte(c)})+"b")
	}
	for _, pattern := range patterns {
		expression := regexp.MustCompile(pattern.String())
		for _, text := range texts {
			if got := pattern.MatchString(text); got != expression.MatchString(text) {
				t.Errorf("%s: %q: %v", pattern, text, got)
			}
		}
	}
}
