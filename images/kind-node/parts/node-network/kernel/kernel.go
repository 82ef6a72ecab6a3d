// Package kernel tells a node's kernel what to let through, by the node's own
// nft and conntrack.
package kernel

import "strings"

// Kernel is reached through programs that somebody knows how to run.
type Kernel struct {
	// Run runs a program of the node; what it printed is part of the error.
	Run func(stdin, program string, args ...string) error
}

// Load runs an nft script: all of it, or nothing.
func (k Kernel) Load(script string) error {
	return k.Run(script, "nft", "-f", "-")
}

// ForgetConnections makes every packet from or to an address a new one: those
// of connections that it began, and of those that came to it, by whatever address.
func (k Kernel) ForgetConnections(address string) error {
	for _, end := range []string{"--orig-src", "--reply-src"} {
		err := k.Run("", "conntrack", "--delete", end, address)
		if err != nil && !strings.Contains(err.Error(), "0 flow entries") {
			return err
		}
	}
	return nil
}
