package cli

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// topList keeps the first entries of an order, at most limit of them; 0 keeps
// all. Entries that compare equal are ordered by key.
type topList struct {
	limit   int
	order   func(a, b *entry) int
	entries entryHeap
}

// add reports whether an entry had to be left out.
func (t *topList) add(e entry) bool {
	if t.entries.after == nil {
		t.entries.after = func(a, b *entry) bool {
			return cmp.Or(t.order(a, b), compareKeys(a, b)) > 0
		}
	}
	if t.limit == 0 || len(t.entries.list) < t.limit {
		heap.Push(&t.entries, e)
		return false
	}
	if last := &t.entries.list[0]; t.entries.after(last, &e) {
		*last = e
		heap.Fix(&t.entries, 0)
	}
	return true
}

func (t *topList) sorted() []entry {
	list := slices.Clone(t.entries.list)
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(t.order(&a, &b), compareKeys(&a, &b)) })
	return list
}

// entryHeap has the last entry of the order on top.
type entryHeap struct {
	list  []entry
	after func(a, b *entry) bool
}

func (h *entryHeap) Len() int           { return len(h.list) }
func (h *entryHeap) Less(i, j int) bool { return h.after(&h.list[i], &h.list[j]) }
func (h *entryHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *entryHeap) Push(x any)         { h.list = append(h.list, x.(entry)) }
func (h *entryHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// plural is "1 record", "2,000 records" or "2 mismatches".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	ending := "s"
	if strings.HasSuffix(noun, "ch") {
		ending = "es"
	}
	return render.Count(int64(n)) + " " + noun + ending
}
