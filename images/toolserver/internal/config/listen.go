package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const defaultAddress = ":8750"

// Listen says where requests come in: at an address, or on a socket that the
// parent already listens on.
type Listen struct {
	Address string
	FD      uintptr
	IsFD    bool
}

func parseListen(text string) (Listen, error) {
	if text == "" {
		text = defaultAddress
	}
	if number, isFD := strings.CutPrefix(text, "fd:"); isFD {
		// 0, 1 and 2 are never sockets that somebody meant to hand over.
		fd, err := strconv.ParseUint(number, 10, 16)
		if err != nil || fd < 3 {
			return Listen{}, fmt.Errorf("%q is not fd:N with N of 3 or more", text)
		}
		return Listen{FD: uintptr(fd), IsFD: true}, nil
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return Listen{}, fmt.Errorf("%q is not host:port", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return Listen{}, fmt.Errorf("%q is not a port", port)
	}
	return Listen{Address: text}, nil
}
