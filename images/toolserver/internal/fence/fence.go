// Package fence binds a sandbox to one rollout, for good. It is what makes a
// stale route, a reused pod address or two racing gateways harmless.
package fence

import "sync/atomic"

// Fence is unbound until Bind succeeds, and never changes afterwards.
type Fence struct {
	rollout atomic.Pointer[string]
}

// Bind says whether the sandbox belongs to rollout, taking it if it is free.
func (f *Fence) Bind(rollout string) bool {
	return f.rollout.CompareAndSwap(nil, &rollout) || *f.rollout.Load() == rollout
}

// Admits says whether rollout may use the sandbox as things are, and takes nothing.
func (f *Fence) Admits(rollout string) bool {
	bound := f.rollout.Load()
	return bound == nil || *bound == rollout
}

// Bound returns the rollout, or nil while there is none.
func (f *Fence) Bound() *string { return f.rollout.Load() }
