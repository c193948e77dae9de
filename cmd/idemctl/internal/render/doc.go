// Package render turns data into text for a terminal or a pipe. It knows
// nothing about what the data means.
//
// A command detects its output stream once, describes one kind of item with a
// [View], and writes items:
//
//	term, err := render.Detect(stdout, os.Getenv, colorFlag)
//	…
//	out, err := render.NewRecords(stdout, render.Options{Terminal: term, Format: format}, render.View[file]{
//		Name: func(f file) string { return f.Path },
//		Fields: []render.Field[file]{
//			{Column: render.Column{Name: "path", Flex: true}, Cell: func(f file) render.Cell { return render.Text(f.Path) }},
//			{Column: render.Column{Name: "size", Right: true}, Cell: func(f file) render.Cell { return render.BytesCell(f.Size) }},
//		},
//	})
//	…
//	return out.WriteAll(files)
//
// # Terminal or pipe
//
// On a terminal output is for eyes: aligned columns under an upper-case
// header, rounded numbers, colours, long text cut to fit. In a pipe it is for
// programs: tab-separated, no header, exact numbers, nothing cut, never a
// colour code.
//
// # Untrusted text
//
// [Table], [KeyValue] and [Records] escape every text they print with [Escape],
// so a key holding an escape sequence cannot drive the terminal. Colour is a
// [Style] beside the text, never codes inside it. Text that a command prints
// itself, a [Confirm] prompt included, must be passed through [Escape] first.
//
// Nothing here may be used from several goroutines at once except the plain
// functions and the methods of [Terminal], [Style], [Format] and [TimeFormat].
package render
