package token

import (
	"crypto/subtle"
	"strings"
	"sync"
)

// remembered is how many tokens are kept: a gateway uses one for many calls,
// and there are a few gateways. Only signed tokens get in, so nobody else can
// push them out.
const remembered = 8

// cache remembers tokens whose signature was found good: verifying one costs
// as much as all the rest of a request. What depends on the time or on the
// request is never remembered. The keys stay the same for a program's life,
// so there is nothing to forget.
type cache struct {
	mu      sync.Mutex
	entries [remembered]struct {
		token  string
		claims Claims
	}
	next int
}

func (c *cache) find(token string) (Claims, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.entries {
		// In constant time: how far a guess is right is nobody's business.
		if entry := &c.entries[i]; entry.token != "" &&
			subtle.ConstantTimeCompare([]byte(entry.token), []byte(token)) == 1 {
			return entry.claims, true
		}
	}
	return Claims{}, false
}

func (c *cache) add(token string, claims Claims) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := &c.entries[c.next]
	// A copy, or the text of the whole request would stay with it.
	entry.token, entry.claims = strings.Clone(token), claims
	c.next = (c.next + 1) % remembered
}
