package cli

import (
	"context"
	"errors"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// discard deletes records that cannot be read, which is the only way out for
// their keys. It takes no conditions: what they would look at is damaged.
func (c *purgeCommand) discard(ctx context.Context, look look) error {
	if !c.yes && !c.dryRun {
		agreed, err := render.Confirm(ctx, c.in, c.err, "Nobody knows what a damaged record stood for; its key runs again if it is retried. Delete?")
		if err := agreement(ctx, agreed, err, "nothing was deleted"); err != nil {
			return err
		}
	}
	result := damagedResult{DryRun: c.dryRun, Deleted: []string{}, Readable: []string{}, Missing: []string{}}
	store, err := c.openWrite(ctx)
	if err != nil {
		return err
	}
	for _, key := range c.keys {
		if err = result.discard(ctx, store, key); err != nil {
			break
		}
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	if look.isJSON() {
		return errors.Join(look.writeJSON(c.out, result), result.err())
	}
	for _, key := range result.Deleted {
		c.note("%s: deleted, its record was damaged", render.Escape(key))
	}
	return result.err()
}

type damagedResult struct {
	DryRun   bool     `json:"dry_run"`
	Deleted  []string `json:"deleted"` // or would be
	Readable []string `json:"readable"`
	Missing  []string `json:"missing"`
}

func (r *damagedResult) discard(ctx context.Context, store *idem.BoltStore, key idem.Key) error {
	_, err := store.Get(ctx, key)
	if damaged := errors.Is(err, idem.ErrCorrupt) || errors.Is(err, idem.ErrFormat); damaged && !r.DryRun {
		err = store.Discard(ctx, key)
	} else if damaged {
		err = nil
	} else if err == nil {
		err = idem.ErrConflict
	}
	switch {
	case err == nil:
		r.Deleted = append(r.Deleted, key.String())
	case errors.Is(err, idem.ErrConflict):
		r.Readable = append(r.Readable, key.String())
	case errors.Is(err, idem.ErrNotFound):
		r.Missing = append(r.Missing, key.String())
	default:
		return err
	}
	return nil
}

func (r *damagedResult) err() error {
	switch {
	case len(r.Readable) > 0:
		return fail(exitPartial, "", "%s can be read and was left alone: purge it without --damaged", render.Escape(r.Readable[0]))
	case len(r.Missing) > 0:
		return fail(exitNotFound, "", "no record for %q", r.Missing[0])
	}
	return nil
}
