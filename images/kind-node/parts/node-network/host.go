package main

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

const hostRoot = "/host"

// onHost runs one of the node's own programs in the node's root.
func onHost(program string, args ...string) error {
	return onHostWith("", program, args...)
}

func onHostWith(stdin, program string, args ...string) error {
	command := &exec.Cmd{
		Path:        "/usr/sbin/" + program,
		Args:        append([]string{program}, args...),
		Dir:         "/",
		Env:         []string{"PATH=/usr/sbin:/usr/bin"},
		Stdin:       strings.NewReader(stdin),
		SysProcAttr: &syscall.SysProcAttr{Chroot: hostRoot},
	}
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w: %s", command.Args, err, text)
	}
	return nil
}
