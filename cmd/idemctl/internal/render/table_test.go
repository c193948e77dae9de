package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func wideTTY() Terminal { return Terminal{IsTTY: true, Width: 120} }

func sampleTable() *Table {
	table := &Table{Columns: []Column{
		{Name: "key", Flex: true}, {Name: "state"}, {Name: "size", Right: true}, {Name: ""},
	}}
	table.AddRow(Text("charge:order-1042"), Red.Text("failed"), BytesCell(182), Text("note"))
	table.AddRow(Text("webhook:evt_9f2a7788c31"), Text("completed"), BytesCell(4_300_000))
	return table
}

func renderTable(t *testing.T, table *Table, term Terminal) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, table.Render(&out, term))
	return out.String()
}

func TestTableOnTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `KEY                      STATE         SIZE
charge:order-1042        failed       182 B  note
webhook:evt_9f2a7788c31  completed  4.1 MiB
`, renderTable(t, sampleTable(), wideTTY()))
}

func TestTableIsCutToTheTerminal(t *testing.T) {
	t.Parallel()
	got := renderTable(t, sampleTable(), Terminal{IsTTY: true, Width: 42})
	require.Equal(t, `KEY               STATE         SIZE
charge:ord…-1042  failed       182 B  note
webhook:ev…88c31  completed  4.1 MiB
`, got)

	full := sampleTable()
	full.Full = true
	require.Contains(t, renderTable(t, full, Terminal{IsTTY: true, Width: 42}), "webhook:evt_9f2a7788c31")
}

func TestTableKeepsFixedColumnsOnTinyTerminal(t *testing.T) {
	t.Parallel()
	require.Equal(t, `KEY       STATE         SIZE
charg…42  failed       182 B  note
webho…31  completed  4.1 MiB
`, renderTable(t, sampleTable(), Terminal{IsTTY: true, Width: 5}))
}

func TestTableFitsAnyReasonableWidth(t *testing.T) {
	t.Parallel()
	table := &Table{Columns: []Column{{Name: "a", Flex: true}, {Name: "n", Right: true}, {Name: "b", Flex: true}}}
	table.AddRow(Text(strings.Repeat("東", 40)), CountCell(18204), Text("short"))
	table.AddRow(Text("x\x1b[2J"), CountCell(7), Text(strings.Repeat("b\n", 30)))
	for width := 26; width < 150; width++ {
		for line := range strings.Lines(renderTable(t, table, Terminal{IsTTY: true, Width: width})) {
			require.LessOrEqual(t, Width(strings.TrimSuffix(line, "\n")), width)
		}
	}
}

func TestTableShrinksTheWidestFirst(t *testing.T) {
	t.Parallel()
	table := &Table{Columns: []Column{{Name: "a", Flex: true}, {Name: "b", Flex: true}}}
	table.AddRow(Text(strings.Repeat("a", 50)), Text("0123456789"))
	got := renderTable(t, table, Terminal{IsTTY: true, Width: 30})
	require.Contains(t, got, "aaaaaaaaaaaa…aaaaa  0123456789\n")
}

func TestColorIsNotWidth(t *testing.T) {
	t.Parallel()
	term := wideTTY()
	term.Color = true
	colored := renderTable(t, sampleTable(), term)
	require.Contains(t, colored, "\x1b[31mfailed\x1b[0m     ")
	plain := regexp.MustCompile(`\x1b\[\d+m`).ReplaceAllString(colored, "")
	require.Equal(t, renderTable(t, sampleTable(), wideTTY()), plain)
}

func TestTableInPipe(t *testing.T) {
	t.Parallel()
	want := "charge:order-1042\tfailed\t182\tnote\nwebhook:evt_9f2a7788c31\tcompleted\t4300000\t\n"
	require.Equal(t, want, renderTable(t, sampleTable(), Terminal{}))
	require.Equal(t, want, renderTable(t, sampleTable(), Terminal{Color: true}))

	table := sampleTable()
	table.Header = true
	require.Equal(t, "KEY\tSTATE\tSIZE\t\n"+want, renderTable(t, table, Terminal{}))
}

func TestTableEscapesCells(t *testing.T) {
	t.Parallel()
	table := &Table{Columns: []Column{{Name: "key\x1b"}, {Name: "value"}}}
	table.AddRow(Text("a\tb\x1b[2J"), Text("x\ny"))
	require.Equal(t, "KEY\\x1b      VALUE\na\\tb\\x1b[2J  x\\ny\n", renderTable(t, table, wideTTY()))
	require.Equal(t, "a\\tb\\x1b[2J\tx\\ny\n", renderTable(t, table, Terminal{}))
}

func TestEmptyTable(t *testing.T) {
	t.Parallel()
	table := &Table{Columns: []Column{{Name: "key"}}}
	require.Empty(t, renderTable(t, table, wideTTY()))
	require.Empty(t, renderTable(t, table, Terminal{}))
	table.Header = true
	require.Equal(t, "KEY\n", renderTable(t, table, wideTTY()))
	require.Zero(t, table.Len())
}

func TestTableRefusesTooManyCells(t *testing.T) {
	t.Parallel()
	table := &Table{Columns: []Column{{Name: "key"}}}
	table.AddRow(Text("a"), Text("b"))
	require.EqualError(t, table.Render(new(strings.Builder), Terminal{}), "row 1 has 2 cells for 1 columns")
}

func TestKeyValue(t *testing.T) {
	t.Parallel()
	var block KeyValue
	block.Add("Key", Text("a\x1b[2J"))
	block.Add("Fingerprint", Text("sha256:9f2c41d0"))
	block.Add("State", Red.Text("failed"))
	block.Add("Size", BytesCell(4_300_000))
	block.Add("Owner", Text(""))

	var out strings.Builder
	require.NoError(t, block.Render(&out, Terminal{IsTTY: true, Width: 12, Color: true}))
	require.Equal(t, `Key          a\x1b[2J
Fingerprint  sha256:9f2c41d0
State        `+"\x1b[31mfailed\x1b[0m"+`
Size         4.1 MiB
Owner
`, out.String())

	out.Reset()
	require.NoError(t, block.Render(&out, Terminal{Color: true}))
	require.Equal(t, "Key\ta\\x1b[2J\nFingerprint\tsha256:9f2c41d0\nState\tfailed\nSize\t4300000\nOwner\t\n", out.String())
}
