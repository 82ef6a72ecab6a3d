package server

import (
	"strings"
	"testing"
)

func BenchmarkPlanOfTheLargestCall(b *testing.B) {
	body := []byte(callBody("c1", "write_file", `{"path":"x","content":"`+strings.Repeat("x", maxCallBytes-100)+`"}`))
	s := &Server{tools: map[string]offered{}}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		r, refused := parseRequest(body)
		if refused != nil {
			b.Fatal(refused)
		}
		s.plan(r)
	}
}
