package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

func newInfoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "info",
		GroupID: groupInspect,
		Short:   "Describe the file",
		Long: `Describes the store's file. If another process holds it, what can be known from
outside is printed, with the holder, and the exit code is 6.`,
		Example: "  idemctl info\n  idemctl info --db /var/lib/app/idem.db -o json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.info(cmd.Context()) },
	}
}

// fileJSON is the file in JSON. What cannot be known of a file that is held is
// null.
type fileJSON struct {
	Path        string      `json:"path"`
	Held        bool        `json:"held"`
	Holder      *holderJSON `json:"holder"`
	FileBytes   int64       `json:"file_bytes"`
	Mode        string      `json:"mode"`
	ID          *string     `json:"id"`
	Format      *int        `json:"format"`
	Created     *string     `json:"created_at"`
	UsedBytes   *int64      `json:"used_bytes"`
	RecordBytes *int64      `json:"record_bytes"`
	Records     *int64      `json:"records"`
	Version     *uint64     `json:"version"`
	Now         *string     `json:"store_time"`
	AheadMS     *int64      `json:"ahead_ms"`
	GraceUntil  *string     `json:"grace_until"`
	Warnings    []string    `json:"warnings"`
}

type holderJSON struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

func (a *app) info(ctx context.Context) error {
	look, err := a.look("info")
	if err != nil {
		return err
	}
	file, openErr := a.inspectFile(ctx)
	if openErr != nil && !file.Held {
		return openErr
	}
	if look.isJSON() {
		err = look.writeJSON(a.out, file)
	} else {
		err = file.block().Render(a.out, look.term)
	}
	if err != nil {
		return err
	}
	return openErr
}

// inspectFile describes the file. If it is held, the description is what can be
// seen from outside and the error says who holds it.
func (a *app) inspectFile(ctx context.Context) (fileJSON, error) {
	s, err := a.openRead(ctx)
	var locked *idem.LockedError
	if errors.As(err, &locked) {
		return heldFile(locked), err
	}
	if err != nil {
		return fileJSON{}, err
	}
	info, err := s.Info(ctx)
	if err = errors.Join(err, s.Close()); err != nil {
		return fileJSON{}, err
	}
	return newFileJSON(info), nil
}

func newFileJSON(info idem.BoltInfo) fileJSON {
	ahead := info.Ahead.Milliseconds()
	return fileJSON{
		Path: info.Path, FileBytes: info.FileBytes, Mode: fmt.Sprintf("%04o", info.Mode),
		ID: &info.ID, Format: &info.Format, Created: jsonTime(info.Created),
		UsedBytes: &info.UsedBytes, RecordBytes: &info.RecordBytes, Records: &info.Records, Version: &info.Version,
		Now: jsonTime(info.Now), AheadMS: &ahead, GraceUntil: jsonTime(info.GraceUntil),
		Warnings: append([]string{}, info.Warnings...),
	}
}

func heldFile(locked *idem.LockedError) fileJSON {
	file := fileJSON{Path: locked.Path, Held: true, Warnings: []string{}}
	if path, err := filepath.Abs(locked.Path); err == nil {
		file.Path = path
	}
	if locked.PID != 0 {
		file.Holder = &holderJSON{PID: locked.PID, Command: locked.Command}
	}
	if stat, err := os.Lstat(locked.Path); err == nil {
		file.FileBytes, file.Mode = stat.Size(), fmt.Sprintf("%04o", stat.Mode().Perm())
	}
	return file
}

func (f *fileJSON) block() *render.KeyValue {
	var kv render.KeyValue
	line := func(label, value string) { kv.Add(label, render.Text(value)) }
	line("Path", f.Path)
	switch {
	case f.Holder != nil:
		kv.Add("Held by", render.Yellow.Text(fmt.Sprintf("pid %d (%s)", f.Holder.PID, orDash(f.Holder.Command))))
	case f.Held:
		kv.Add("Held by", render.Yellow.Text("another process"))
	}
	kv.Add("File size", render.BytesCell(f.FileBytes))
	line("Mode", f.Mode)
	if f.Held {
		return &kv
	}
	line("Id", *f.ID)
	line("Format", fmt.Sprint(*f.Format))
	line("Created", *orEmpty(f.Created))
	kv.Add("In use", render.BytesCell(*f.UsedBytes))
	kv.Add("Records", render.CountCell(*f.Records))
	kv.Add("Record bytes", render.BytesCell(*f.RecordBytes))
	line("Version", fmt.Sprint(*f.Version))
	line("Store time", *orEmpty(f.Now))
	if f.GraceUntil != nil {
		line("Grace until", *f.GraceUntil)
	}
	for _, warning := range f.Warnings {
		kv.Add("Warning", render.Yellow.Text(warning))
	}
	return &kv
}

func orEmpty(s *string) *string {
	if s == nil {
		return new(string)
	}
	return s
}
