package server

import "sync/atomic"

// budget bounds something that many requests hold at the same time.
type budget struct{ left atomic.Int64 }

func newBudget(total int64) *budget {
	b := &budget{}
	b.left.Store(total)
	return b
}

// take says whether amount was left; if so, give must follow.
func (b *budget) take(amount int64) bool {
	if b.left.Add(-amount) >= 0 {
		return true
	}
	b.left.Add(amount)
	return false
}

func (b *budget) give(amount int64) { b.left.Add(amount) }
