package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// resultFile is what --result-file names. A file is replaced as a whole, under
// its real name if it is a link; a pipe or a device is written to. A nil
// resultFile writes nothing.
type resultFile struct {
	target
	stream *os.File // the pipe or device
}

const (
	resultFilePattern = ".idemctl-result-*"
	// readerPatience is how long a pipe may be without a reader.
	readerPatience = 10 * time.Second
	// largestResult is more than any result file has.
	largestResult = 64 << 10
)

// newResultFile refuses what must not be written to before anything runs, and
// what cannot be. It also removes the result of an earlier call, which would be
// mistaken for this one's if this one is killed.
func (a *app) newResultFile(inputs []string) (*resultFile, error) {
	if a.resultFile == "" {
		return nil, nil
	}
	if a.resultFile == "-" {
		return nil, usage("--result-file is -: standard output is the command's, so name a file")
	}
	t, err := followLinks(a.resultFile)
	if err != nil {
		return nil, fail(exitRunFailure, "", "result file: %w", err)
	}
	if err := a.refuseTarget(t, inputs); err != nil {
		return nil, err
	}
	f := &resultFile{target: t}
	if f.streams() {
		return f, nil
	}
	if err := f.probe(); err != nil {
		return nil, fail(exitRunFailure, "", "result file: cannot write into %s: %w", filepath.Dir(f.path), plainCause(err))
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fail(exitRunFailure, "", "result file: %w", err)
	}
	return f, nil
}

// refuseTarget keeps a result from being written over what is in use.
func (a *app) refuseTarget(t target, inputs []string) error {
	if t.info != nil {
		switch mode := t.info.Mode(); {
		case mode.IsDir():
			return usage("--result-file %q is a directory", a.resultFile)
		case !mode.IsRegular() && !t.streams():
			return usage("--result-file %q is no file that could be written", a.resultFile)
		case !mode.IsRegular():
			return nil
		}
	}
	db, _, err := a.dbPath()
	if err != nil {
		return err
	}
	for _, path := range []string{db, db + "-wal"} {
		if t.is(path) {
			return usage("--result-file %q is the store's own file", a.resultFile)
		}
	}
	for _, path := range inputs {
		if t.is(path) {
			return usage("--result-file %q is an --input, too", a.resultFile)
		}
	}
	for _, stream := range []any{a.in, a.out, a.err} {
		if f, ok := stream.(*os.File); ok && t.info != nil {
			if info, err := f.Stat(); err == nil && os.SameFile(info, t.info) {
				return usage("--result-file %q is where standard input, output or errors are", a.resultFile)
			}
		}
	}
	return nil
}

// probe finds out in time whether a file can be made.
func (f *resultFile) probe() error {
	temp, err := os.CreateTemp(filepath.Dir(f.path), resultFilePattern)
	if err != nil {
		return err
	}
	return errors.Join(temp.Close(), os.Remove(temp.Name()))
}

// open opens a pipe or device, so that it is found out in time whether it can be
// written to. A pipe needs a reader, which may come a little later than we do.
func (f *resultFile) open(ctx context.Context) (err error) {
	if f == nil || !f.streams() {
		return nil
	}
	flags := os.O_WRONLY
	if f.info.Mode()&fs.ModeNamedPipe != 0 {
		flags |= syscall.O_NONBLOCK // else a signal could not end the waiting
	}
	for began := time.Now(); ; {
		f.stream, err = os.OpenFile(f.path, flags, 0)
		if !errors.Is(err, syscall.ENXIO) || time.Since(began) > readerPatience {
			break
		}
		if !sleep(ctx, yieldTime) {
			return context.Cause(ctx)
		}
	}
	if errors.Is(err, syscall.ENXIO) {
		return fmt.Errorf("nobody reads the pipe %s", f.path)
	}
	return err
}

func (f *resultFile) write(o runOutcome) error {
	if f == nil {
		return nil
	}
	var doc bytes.Buffer
	if err := render.WriteJSON(&doc, render.Terminal{}, o); err != nil {
		return err
	}
	if f.stream != nil {
		_, err := doc.WriteTo(f.stream)
		return errors.Join(err, f.stream.Close())
	}
	temp, err := os.CreateTemp(filepath.Dir(f.path), resultFilePattern) // mode 0600
	if err != nil {
		return err
	}
	_, err = doc.WriteTo(temp)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(temp.Name()) // the first error is the one to tell
	}
	return err
}

// forgetResult removes the result of an earlier call after a call that was too
// wrong to begin. Only a result: what else was named by mistake stays.
func (a *app) forgetResult() {
	if a.resultFile == "" {
		return
	}
	t, err := followLinks(a.resultFile)
	if err != nil || t.info == nil || !t.info.Mode().IsRegular() || t.info.Size() > largestResult {
		return
	}
	f, err := os.Open(t.path)
	if err != nil {
		return
	}
	defer f.Close()
	begin := []byte(`{"outcome":"`)
	head := make([]byte, len(begin))
	if _, err := io.ReadFull(f, head); err == nil && bytes.Equal(head, begin) {
		_ = os.Remove(t.path) // the error of the call is the one to tell
	}
}

// plainCause is what the system says, without the name of a temporary file.
func plainCause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
