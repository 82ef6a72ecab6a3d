package session

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The shell is an interactive one without a terminal: that makes it survive an
// interrupt, a syntax error and an unset variable, as it would for a person.
// Job control is off, so its commands stay in its process group.

// In the shell, 3 is where it reports, 4 is /dev/null.
const (
	hush = "PS1= PS2=; unset HISTFILE TMOUT PROMPT_COMMAND; [ -z \"$BASH_VERSION\" ] || set +o history\n"
	// $? of the last command is there for the next one; a function, because
	// a subshell could not be had under a full limit of processes.
	remember = "__status() { return \"$1\"; }\n"
)

// The shells that understand all of this.
var known = []string{"bash", "sh", "dash", "ash", "busybox"}

// commandLine makes a session's shell out of the one that runs commands.
func commandLine(shell []string) (line []string, ok bool) {
	name := filepath.Base(shell[0])
	if !slices.Contains(known, name) {
		return nil, false
	}
	line = []string{shell[0]}
	switch name {
	case "busybox":
		line = append(line, "sh")
	case "bash":
		line = append(line, "--norc", "--noediting")
		login := func(argument string) bool { return argument == "--login" || argument == "-l" || argument == "-lc" }
		if slices.ContainsFunc(shell[1:], login) {
			line = append(line, "--login")
		} else {
			line = append(line, "--noprofile")
		}
	}
	return append(line, "-i", "+m"), true
}

// The command is an argument of eval: whatever is wrong with its syntax, the
// shell goes on to the report. `command` keeps a sh alive that would exit on a
// syntax error in a special built-in. Neither the input that we feed nor the
// report's descriptor is there for what the command starts.
func runLine(text string, lastStatus int) string {
	var b strings.Builder
	if lastStatus != 0 {
		b.WriteString("__status " + strconv.Itoa(lastStatus) + " || ")
	}
	b.WriteString(`\command \eval `)
	b.WriteString(quote(text))
	b.WriteString(" 0<&4 3>&- 4<&-\n")
	return b.String()
}

// reportLine makes the shell say that it has come this far, with a word that
// nothing it ran before can know.
func reportLine(nonce string) string {
	return `\command \printf '%s %s\n' ` + nonce + ` "$?" >&3` + "\n"
}

func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

func newNonce() string {
	var random [16]byte
	rand.Read(random[:])
	return hex.EncodeToString(random[:])
}

// report looks for one line among whatever else is written to the descriptor.
type report struct {
	nonce   string
	partial []byte
	status  int
	found   bool
}

// Longer than any report; what is longer is no report.
const reportMax = 64

func (r *report) write(chunk []byte) (found bool) {
	for _, c := range chunk {
		if c != '\n' {
			if len(r.partial) < reportMax {
				r.partial = append(r.partial, c)
			}
			continue
		}
		word, number, _ := strings.Cut(string(r.partial), " ")
		r.partial = r.partial[:0]
		status, err := strconv.Atoi(number)
		if word == r.nonce && err == nil {
			r.status, r.found = status&0xff, true
			return true
		}
	}
	return false
}
