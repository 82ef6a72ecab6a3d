package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"rollcage.dev/toolserver/internal/strictjson"
)

// Fingerprint stands for a tool and its arguments.
type Fingerprint [sha256.Size]byte

// Canonical returns the decoded arguments and their one spelling: no white
// space, sorted names, numbers as written. Tools are given the canonical
// bytes, so two calls with one fingerprint cannot differ in anything a tool
// can see.
func Canonical(arguments []byte) (value any, canonical []byte, err error) {
	if value, err = strictjson.Value(arguments); err != nil {
		return nil, nil, err
	}
	canonical, err = json.Marshal(value)
	return value, canonical, err
}

// FingerprintOf hashes a call. The length keeps a tool's name from running
// into its arguments.
func FingerprintOf(tool string, canonical []byte) Fingerprint {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(tool)))
	h.Write(length[:])
	h.Write([]byte(tool))
	h.Write(canonical)
	return Fingerprint(h.Sum(nil))
}
