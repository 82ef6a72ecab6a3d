package server

import (
	"net/http"
	"sync"
	"time"

	"rollcage.dev/toolserver/internal/token"
)

// seal ends all change in a sandbox, once and for good: whoever reads its files
// afterwards reads what they will always be.
type seal struct {
	once sync.Once
	// done is closed when nothing runs any more.
	done chan struct{}
	left int
}

// postSeal takes no more calls, gives those that run a while to end, ends them
// and whatever is left of earlier ones, and answers when all of that is done.
func (s *Server) postSeal(w http.ResponseWriter, r *http.Request, claims token.Claims) *refusal {
	if r.ContentLength != 0 {
		return badRequest("a seal has no body")
	}
	wait, refused := parseWait(r)
	switch {
	case refused != nil:
		return refused
	case s.stopping():
		return errStopping
	case !s.ready():
		return errNotReady
	}
	if refused := s.bind(claims); refused != nil {
		return refused
	}
	// It goes on when its client goes away; a repeat waits for the same.
	s.seal.once.Do(func() { go s.freeze(wait) })
	select {
	case <-s.seal.done:
		return writeValue(w, map[string]any{"sealed": true, "left": s.seal.left})
	case <-s.ctx.Done():
		return errStopping
	case <-r.Context().Done():
		return nil
	}
}

func (s *Server) freeze(wait time.Duration) {
	s.entry.Lock()
	s.shut(errSealed)
	s.entry.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		s.endWork(errSealed)
		<-ended
	}
	if s.options.Freeze != nil {
		s.seal.left = s.options.Freeze()
	}
	close(s.seal.done)
}

// sealed says that nothing changes any more.
func (s *Server) sealed() bool {
	select {
	case <-s.seal.done:
		return true
	default:
		return false
	}
}
