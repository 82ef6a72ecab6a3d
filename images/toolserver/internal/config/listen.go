package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

const (
	defaultAddress = ":8750"
	fdPrefix       = "fd:"
)

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
	if strings.HasPrefix(text, fdPrefix) {
		fd, err := parseFD(text)
		return Listen{FD: fd, IsFD: err == nil}, err
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

// parseLifeline returns the descriptor that tells when nobody needs the
// sandbox any longer; 0 when there is none.
func parseLifeline(text string) (uintptr, error) {
	if text == "" {
		return 0, nil
	}
	return parseFD(text)
}

func parseFD(text string) (uintptr, error) {
	number, isFD := strings.CutPrefix(text, fdPrefix)
	fd, err := strconv.ParseUint(number, 10, 16)
	// 0, 1 and 2 are never what somebody meant to hand over.
	if !isFD || err != nil || fd < 3 {
		return 0, fmt.Errorf("%q is not fd:N with N of 3 or more", text)
	}
	return uintptr(fd), nil
}
