package idem

import (
	"math/rand/v2"
	"os"
)

const crashSector = 512

// sectorFate is what becomes of a sector that was written and not yet synced.
type sectorFate int

const (
	fateNew sectorFate = iota
	fateOld
	fateZero
	fateGarbage
	fates
)

// tear puts some of what was written and not synced on the disk. How is drawn
// first, so that states which pure chance would hardly make come up too.
func tear(b []byte, writes []diskEvent, random *rand.Rand) {
	sectors := 0
	for _, w := range writes {
		sectors += (len(w.data) + crashSector - 1) / crashSector
	}
	if sectors == 0 {
		return
	}
	chosen := random.IntN(sectors)
	var fate func(n int) sectorFate
	switch random.IntN(7) {
	case 0:
		fate = func(int) sectorFate { return fateNew }
	case 1:
		fate = func(int) sectorFate { return fateOld }
	case 2: // in order, up to some sector
		fate = func(n int) sectorFate { return pick(n < chosen, fateNew, fateOld) }
	case 3: // all but one
		other := sectorFate(1 + random.IntN(int(fates)-1))
		fate = func(n int) sectorFate { return pick(n == chosen, other, fateNew) }
	case 4: // only one
		fate = func(n int) sectorFate { return pick(n == chosen, fateNew, fateOld) }
	case 5:
		fate = func(int) sectorFate { return sectorFate(random.IntN(2)) }
	default:
		fate = func(int) sectorFate { return sectorFate(random.IntN(int(fates))) }
	}
	n := 0
	for _, w := range writes {
		for at := 0; at < len(w.data); at += crashSector {
			part := w.data[at:min(at+crashSector, len(w.data))]
			if at == 0 && w.off < int64(2*os.Getpagesize()) {
				tearMeta(b[w.off:], part, fate(n), random)
			} else {
				tearSector(b[w.off+int64(at):], part, fate(n), random)
			}
			n++
		}
	}
}

// tearMeta tears a meta page anywhere within its sector. What it is torn with is
// always its older content: bbolt's check, not bbolt, stumbles over a page that
// does not even bear its number.
func tearMeta(b, new []byte, fate sectorFate, random *rand.Rand) {
	switch fate {
	case fateNew:
		copy(b, new)
	case fateOld:
	default:
		copy(b, new[:random.IntN(crashMeta+1)])
	}
}

// crashMeta is how much of a meta page bbolt uses.
const crashMeta = 80

func tearSector(b, new []byte, fate sectorFate, random *rand.Rand) {
	switch b = b[:len(new)]; fate {
	case fateNew:
		copy(b, new)
	case fateZero:
		clear(b)
	case fateGarbage:
		for i := range b {
			b[i] = byte(random.Uint32())
		}
	}
}

func pick(first bool, a, b sectorFate) sectorFate {
	if first {
		return a
	}
	return b
}
