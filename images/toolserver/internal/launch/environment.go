package launch

import (
	"bufio"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// What describes the sandbox's place in the infrastructure is none of the
// model's business. The kubelet sets KUBERNETES_* in every container and
// offers no way to turn that off.
var hiddenPrefixes = []string{"ROLLCAGE_", "KUBERNETES_"}

// Left over from whoever started us; a shell sets its own.
var hiddenNames = []string{"PWD", "OLDPWD", "SHLVL", "_"}

// Environment is what children see.
type Environment struct {
	base map[string]string
	// list is base as exec wants it, made once: most calls add nothing.
	list []string
}

// NewEnvironment takes the image's own environment, without what is ours, and
// what the sandbox's environment adds to it.
func NewEnvironment(image []string, workdir string, added map[string]string) *Environment {
	base := map[string]string{"PATH": defaultPath}
	for _, entry := range image {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || slices.Contains(hiddenNames, name) {
			continue
		}
		hidden := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if !slices.ContainsFunc(hiddenPrefixes, hidden) {
			base[name] = value
		}
	}
	if base["HOME"] == "" {
		base["HOME"] = home("/etc/passwd", os.Getuid(), workdir)
	}
	maps.Copy(base, added)
	return &Environment{base: base, list: list(base)}
}

// With is the environment of one program; the result must not be changed.
func (e *Environment) With(extra map[string]string) []string {
	if len(extra) == 0 {
		return e.list
	}
	merged := maps.Clone(e.base)
	maps.Copy(merged, extra)
	return list(merged)
}

// Path is the search path for programs.
func (e *Environment) Path() string { return e.base["PATH"] }

// BadName returns the first name or value that cannot be in an environment.
func BadName(extra map[string]string) (name string, bad bool) {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(extra[name], "\x00") {
			return name, true
		}
	}
	return "", false
}

func list(environment map[string]string) []string {
	entries := make([]string, 0, len(environment))
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		entries = append(entries, name+"="+environment[name])
	}
	return entries
}

// home looks the user up without cgo or the name service.
func home(passwd string, uid int, otherwise string) string {
	file, err := os.Open(passwd)
	if err != nil {
		return otherwise
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) >= 6 && fields[2] == strconv.Itoa(uid) && fields[5] != "" {
			return fields[5]
		}
	}
	return otherwise
}
