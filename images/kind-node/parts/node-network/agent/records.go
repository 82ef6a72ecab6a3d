package agent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// records remember, a file each, which pods the node has and which addresses it has ever given: an agent that starts
// anew finds them there. They lie where a restarted node has nothing any more, as it then has no pods either.
type records struct{ directory string }

func (r records) keep(one Attachment) error {
	if err := os.MkdirAll(r.directory, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(one)
	if err != nil {
		return err
	}
	// Renamed into place, so that there is never half of one.
	path := filepath.Join(r.directory, one.Container)
	if err := os.WriteFile(path+".tmp", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path+".json")
}

func (r records) drop(container string) error {
	err := os.Remove(filepath.Join(r.directory, container+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// firstUse notes that an address is used, and tells whether it never was before.
func (r records) firstUse(address netip.Addr) (bool, error) {
	if err := os.MkdirAll(r.directory, 0o700); err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(r.directory, address.String()+".used"), os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

// all returns those that are kept.
func (r records) all() ([]Attachment, error) {
	paths, err := filepath.Glob(filepath.Join(r.directory, "*.json"))
	if err != nil {
		return nil, err
	}
	var found []Attachment
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var one Attachment
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}
