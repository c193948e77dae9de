package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/idembolt/idem"
	"github.com/idembolt/idem/cmd/idemctl/internal/render"
)

// maxPartName is the longest name of a part of a fingerprint.
const maxPartName = 64

// input is what must be the same in repeats: the arguments, the content of the
// files, the values of the variables. The parts' names are what a mismatch
// names.
func (r *onceRun) input() (idem.Parts, error) {
	parts := idem.Parts{{Name: "argv", Data: joinArgs(r.argv)}}
	for _, path := range sortedSet(r.flags.inputs) {
		sum, err := fileSum(path)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		parts = append(parts, idem.Part{Name: partName("input ", path), Data: sum})
	}
	for _, name := range sortedSet(r.flags.envs) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, usage("invalid --env %q: it is not the name of a variable", name)
		}
		parts = append(parts, idem.Part{Name: partName("env ", name), Data: envValue(name)})
	}
	return parts, nil
}

func sortedSet(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// joinArgs keeps the borders between the arguments.
func joinArgs(args []string) []byte {
	var b []byte
	for _, arg := range args {
		b = binary.BigEndian.AppendUint64(b, uint64(len(arg)))
		b = append(b, arg...)
	}
	return b
}

func fileSum(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// envValue tells a variable that is empty from one that is not set.
func envValue(name string) []byte {
	value, set := os.LookupEnv(name)
	if !set {
		return []byte{0}
	}
	return append([]byte{1}, value...)
}

// partName shortens a long name to its end, which says most of a path, and adds
// a hash that keeps it apart from others with the same end.
func partName(kind, name string) string {
	if len(kind)+len(name) <= maxPartName {
		return kind + name
	}
	sum := sha256.Sum256([]byte(name))
	hash := "…#" + hex.EncodeToString(sum[:8])
	end := name[len(name)-(maxPartName-len(kind)-len(hash)):]
	return kind + strings.ToValidUTF8(end, "") + hash
}

// sizeFlag is a flag for a number of bytes: 4096, 64KiB, 1MiB, 1GiB.
type sizeFlag struct{ value *int64 }

func newSizeFlag(value *int64, initial int64) sizeFlag {
	*value = initial
	return sizeFlag{value}
}

func (s sizeFlag) Set(text string) error {
	n, err := render.ParseSize(text)
	if err == nil {
		*s.value = n
	}
	return err
}

func (s sizeFlag) String() string {
	if s.value == nil {
		return ""
	}
	for shift, unit := range map[int]string{10: "KiB", 20: "MiB", 30: "GiB"} {
		if n := *s.value >> shift; n > 0 && n < 1<<10 && n<<shift == *s.value {
			return strconv.FormatInt(n, 10) + unit
		}
	}
	return strconv.FormatInt(*s.value, 10)
}

func (s sizeFlag) Type() string { return "SIZE" }
