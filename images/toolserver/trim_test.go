package main

import (
	"os"
	"testing"
)

func TestOnlyTheProgramsOwnUnwrittenPartsAreGivenBack(t *testing.T) {
	const path = "/opt/toolserver"
	cases := []struct {
		name, line string
		size       uintptr
	}{
		{"its code", "00400000-00401000 r-xp 00000000 fe:00 12 /opt/toolserver\n", 0x1000},
		{"its constants", "00401000-00404000 r--p 00001000 fe:00 12 /opt/toolserver\n", 0x3000},
		{"its variables", "00404000-00405000 rw-p 00004000 fe:00 12 /opt/toolserver\n", 0},
		{"someone else's code", "7f0000000000-7f0000001000 r-xp 00000000 fe:00 13 /lib/libc.so\n", 0},
		{"its heap", "c000000000-c000400000 rw-p 00000000 00:00 0\n", 0},
		{"nonsense", "x-y r-xp 0 0 0 /opt/toolserver\n", 0},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if _, size, ok := readOnlyPart(test.line, path); size != test.size || ok != (test.size > 0) {
				t.Errorf("got %x, %v", size, ok)
			}
		})
	}
}

func TestTheProgramGoesOnAfterTrimming(t *testing.T) {
	trim()
	if text, err := os.ReadFile("/proc/self/stat"); err != nil || len(text) == 0 {
		t.Error(err)
	}
}
