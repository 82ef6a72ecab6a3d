package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// install copies this binary to path. Whoever looks sees the old file or the
// whole new one, and nobody may change it.
func install(path string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this binary: %w", err)
	}
	source, err := os.Open(self)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.CreateTemp(filepath.Dir(path), ".toolserver-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(target.Name())
		}
	}()
	if _, err := io.Copy(target, source); err != nil {
		target.Close()
		return err
	}
	if err := target.Chmod(0o555); err != nil {
		target.Close()
		return err
	}
	if err := target.Close(); err != nil {
		return err
	}
	return os.Rename(target.Name(), path)
}
