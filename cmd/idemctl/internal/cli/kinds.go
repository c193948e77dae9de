package cli

import (
	"slices"
	"time"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// recordKind says how the records of one kind are shown.
type recordKind struct {
	name string
	// detail reads the value of a record. It returns nil where there is nothing
	// to tell beside what every record has, and an error if the value is not
	// what the kind's package writes. Nil: the kind has no detail.
	detail func(e *entry, now time.Time) (detail, error)
	// standing says that the record stands for no work that could be half done,
	// so that there is never anything to settle.
	standing bool
}

// recordKinds are the kinds that the library and idemctl write.
func recordKinds() []recordKind {
	return []recordKind{
		{name: "func"},
		{name: recordKindRun, detail: describeRun},
		{name: "http", detail: describeHTTP},
		{name: "http.chunk", detail: describeChunk, standing: true},
		{name: "intent", detail: describeIntent, standing: true},
		{name: "token", detail: describeToken, standing: true},
		{name: "lock", detail: describeLock, standing: true},
		{name: "debounce", detail: describeDebounce, standing: true},
		{name: recordKindFSM, detail: describeFSM, standing: true},
		{name: "table", detail: describeRow, standing: true},
		{name: "table.unique", detail: describeUnique, standing: true},
		{name: "inbox", detail: describeInbox},
	}
}

func kindNames() []string {
	var names []string
	for _, k := range recordKinds() {
		names = append(names, k.name)
	}
	return names
}

// kindOf returns the zero kind, which has no detail, for one that callers have
// named themselves.
func kindOf(name string) recordKind {
	kinds := recordKinds()
	i := slices.IndexFunc(kinds, func(k recordKind) bool { return k.name == name })
	if i < 0 {
		return recordKind{}
	}
	return kinds[i]
}

// detail is what the value of a record says, as far as it is shown without being
// asked for: states, times and sizes, never content. In JSON it is the member of
// that name.
type detail interface {
	// brief is a word or two for a list.
	brief() string
	// block adds the labelled lines for people.
	block(b *detailBlock)
}

// describe returns the detail of a record, or nil if there is none. A value that
// cannot be read is no error: the rest of the record still helps.
func describe(e *entry, now time.Time) detail {
	read := kindOf(e.Kind).detail
	if e.Damage != nil || read == nil {
		return nil
	}
	d, err := read(e, now)
	if err != nil {
		return unreadable{err.Error()}
	}
	return d
}

// briefly is the detail for a list, or "".
func briefly(e *entry, now time.Time) string {
	if d := describe(e, now); d != nil {
		return d.brief()
	}
	return ""
}

// detailBlock collects the lines of a detail.
type detailBlock struct {
	*render.KeyValue
	look    look
	now     time.Time
	content bool // content was asked for
}

func (b *detailBlock) line(label, value string) { b.Add(label, render.Text(value)) }

// moment adds a line with a time, unless that is zero.
func (b *detailBlock) moment(label string, t time.Time) {
	if !t.IsZero() {
		b.line(label, b.look.moment(t, b.now))
	}
}

// unreadable is the detail of a value that its kind's package has not written.
type unreadable struct {
	Problem string `json:"problem"`
}

func (u unreadable) brief() string        { return "unreadable" }
func (u unreadable) block(b *detailBlock) { b.Add("Detail", render.Red.Text("unreadable: "+u.Problem)) }

// unreadableError is why a value cannot be read. It says no more than of what the
// value should be: the errors of decoders quote it, and it may be private.
type unreadableError string

func (e unreadableError) Error() string { return "the value is not that of " + string(e) }
