package launch

import (
	"os"
	"path/filepath"
	"strings"
)

// Find looks for an executable as a shell would: by path when the name holds a
// slash, else along the search path and then in the usual places, which an
// image may have left out of its PATH.
func Find(name, path string) (string, bool) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	for _, directory := range filepath.SplitList(path + ":" + defaultPath) {
		candidate := filepath.Join(directory, name)
		if filepath.IsAbs(candidate) && executable(candidate) {
			return candidate, true
		}
	}
	return "", false
}

// Find finds an executable of the sandbox; a relative path begins at the work
// directory.
func (b *Base) Find(name string) (string, bool) {
	if strings.Contains(name, "/") {
		name = b.Path(name)
	}
	return Find(name, b.Environment.Path())
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
