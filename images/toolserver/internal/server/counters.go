package server

import (
	"sync/atomic"

	"rollcage.dev/toolserver/internal/token"
	"rollcage.dev/toolserver/internal/tool"
)

// counters only ever grow; /v1/state shows them.
type counters struct {
	ok, failed, timedOut, malformed atomic.Int64

	replays     atomic.Int64
	conflicts   atomic.Int64
	misroutes   atomic.Int64
	busy        atomic.Int64
	internal    atomic.Int64
	connections atomic.Int64
	auth        [8]atomic.Int64 // by position in token.Codes
}

func (c *counters) finished(class tool.Class) {
	switch class {
	case tool.OK:
		c.ok.Add(1)
	case tool.Failed:
		c.failed.Add(1)
	case tool.TimedOut:
		c.timedOut.Add(1)
	case tool.Malformed:
		c.malformed.Add(1)
	}
}

func (c *counters) refused(code token.Code) {
	for i, known := range token.Codes {
		if known == code {
			c.auth[i].Add(1)
		}
	}
}

// counts is how counters look from outside.
type counts struct {
	Calls              map[tool.Class]int64 `json:"calls"`
	Replays            int64                `json:"replays"`
	Conflicts          int64                `json:"conflicts"`
	MisroutesRefused   int64                `json:"misroutes_refused"`
	AuthFailures       map[token.Code]int64 `json:"auth_failures"`
	Busy               int64                `json:"busy"`
	InternalErrors     int64                `json:"internal_errors"`
	ConnectionsRefused int64                `json:"connections_refused"`
}

func (c *counters) snapshot() counts {
	auth := map[token.Code]int64{}
	for i, code := range token.Codes {
		auth[code] = c.auth[i].Load()
	}
	return counts{
		Calls: map[tool.Class]int64{
			tool.OK: c.ok.Load(), tool.Failed: c.failed.Load(),
			tool.TimedOut: c.timedOut.Load(), tool.Malformed: c.malformed.Load(),
		},
		Replays:            c.replays.Load(),
		Conflicts:          c.conflicts.Load(),
		MisroutesRefused:   c.misroutes.Load(),
		AuthFailures:       auth,
		Busy:               c.busy.Load(),
		InternalErrors:     c.internal.Load(),
		ConnectionsRefused: c.connections.Load(),
	}
}
