package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// resultFile is the file that --result-file names. It is made before anything
// runs, under another name, so that a path that cannot be written is found out in
// time, and renamed when it is complete. A nil resultFile writes nothing.
type resultFile struct {
	path string
	temp *os.File
}

// newResultFile also removes the result of an earlier call, which would be
// mistaken for this one's if this one is killed.
func newResultFile(path string) (*resultFile, error) {
	if path == "" {
		return nil, nil
	}
	temp, err := os.CreateTemp(filepath.Dir(path), resultFilePattern) // mode 0600
	if err != nil {
		return nil, err
	}
	f := &resultFile{path: path, temp: temp}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.discard()
		return nil, err
	}
	return f, nil
}

func (f *resultFile) write(o runOutcome) error {
	if f == nil {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = f.temp.Write(append(data, '\n'))
	if err = errors.Join(err, f.temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.temp.Name(), f.path); err != nil {
		return err
	}
	f.temp = nil
	return nil
}

// discard removes what was not written.
func (f *resultFile) discard() {
	if f == nil || f.temp == nil {
		return
	}
	_ = f.temp.Close()
	_ = os.Remove(f.temp.Name())
}
