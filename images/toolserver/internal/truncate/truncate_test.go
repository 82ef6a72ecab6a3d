package truncate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// reference is the same cut over the whole output at once, written for
// clarity: characters first, then as many as fit from either end.
func reference(whole []byte, limit int) string {
	limit = max(limit, Least)
	type char struct{ raw, shown string }
	var chars []char
	shown := 0
	for rest := whole; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		c := char{string(rest[:size]), string(r)}
		chars = append(chars, c)
		shown += len(c.shown)
		rest = rest[size:]
	}
	if shown <= limit {
		var b strings.Builder
		for _, c := range chars {
			b.WriteString(c.shown)
		}
		return b.String()
	}
	room := limit - noteSize
	headRoom, tailRoom := room-room/2, room/2
	head, tail, kept := "", "", 0
	for i := 0; len(head)+len(chars[i].shown) <= headRoom; i++ {
		head += chars[i].shown
		kept += len(chars[i].raw)
	}
	for i := len(chars) - 1; len(tail)+len(chars[i].shown) <= tailRoom; i-- {
		tail = chars[i].shown + tail
		kept += len(chars[i].raw)
	}
	return head + fmt.Sprintf("\n[... %d of %d bytes left out ...]\n", len(whole)-kept, len(whole)) + tail
}

func inChunks(whole []byte, limit int, random *rand.Rand) Text {
	cut := New(limit)
	for len(whole) > 0 {
		n := 1 + random.IntN(min(len(whole), 700))
		cut.Write(whole[:n])
		whole = whole[n:]
	}
	return cut.Text()
}

func FuzzCutAgreesWithTheWholeBufferReference(f *testing.F) {
	f.Add([]byte(""), 256, uint64(1))
	f.Add([]byte(strings.Repeat("a", 257)), 256, uint64(2))
	f.Add([]byte(strings.Repeat("é", 300)), 257, uint64(3))
	f.Add([]byte(strings.Repeat("\xff", 300)), 300, uint64(4))
	f.Add([]byte(strings.Repeat("𝄞\xf0\x9d", 200)), 321, uint64(5))
	f.Add([]byte(strings.Repeat("\xe2\x82", 400)+"€"), 258, uint64(6))
	f.Fuzz(func(t *testing.T, whole []byte, limit int, seed uint64) {
		limit = Least + (limit&0x7fffffff)%2000
		got := inChunks(whole, limit, rand.New(rand.NewPCG(seed, 0)))
		if want := reference(whole, limit); got.String != want {
			t.Fatalf("limit %d:\n got %q\nwant %q", limit, got.String, want)
		}
		if len(got.String) > limit {
			t.Fatalf("%d bytes are more than %d", len(got.String), limit)
		}
		if !utf8.ValidString(got.String) || got.Total != int64(len(whole)) {
			t.Fatalf("invalid text or wrong total %d", got.Total)
		}
	})
}

func TestRandomOutputIsCutTheSameHoweverItArrives(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "\n", "é", "€", "𝄞", "\xff", "\xc3", "\xe2\x82", "\x80", "\x00"}
	for range 500 {
		var whole []byte
		for range random.IntN(3000) {
			whole = append(whole, alphabet[random.IntN(len(alphabet))]...)
		}
		limit := Least + random.IntN(1500)
		want := reference(whole, limit)
		for range 3 {
			if got := inChunks(whole, limit, random); got.String != want {
				t.Fatalf("limit %d:\n got %q\nwant %q", limit, got.String, want)
			}
		}
	}
}

func TestHugeOutputKeepsMemoryFlat(t *testing.T) {
	cut := New(64 << 10)
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	const chunks = 5 << 30 / (64 << 10)
	for range chunks {
		cut.Write(chunk)
	}
	text := cut.Text()
	if text.Total != 5<<30 || !text.Truncated || len(text.String) > 64<<10 {
		t.Fatalf("total %d, truncated %v, length %d", text.Total, text.Truncated, len(text.String))
	}
	if held := cap(cut.head) + cap(cut.tail); held > 256<<10 {
		t.Fatalf("%d bytes are held", held)
	}
	if !strings.HasSuffix(text.String, "0123456789abcdef") {
		t.Fatal("the tail is not the end of the output")
	}
}

func TestOutputWithinTheLimitIsWhole(t *testing.T) {
	cut := New(300)
	cut.Write([]byte(strings.Repeat("x", 300)))
	if text := cut.Text(); text.Truncated || len(text.String) != 300 {
		t.Fatalf("cut to %d", len(text.String))
	}
}
