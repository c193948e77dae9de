package render

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func environ(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestDetectColor(t *testing.T) {
	t.Parallel()
	const tty = "IDEM_FORCE_TTY"
	tests := []struct {
		name string
		flag string
		env  map[string]string
		want bool
	}{
		{"pipe", "", nil, false},
		{"terminal", "", map[string]string{tty: "80"}, true},
		{"auto on a terminal", "auto", map[string]string{tty: "80"}, true},
		{"always beats NO_COLOR", "always", map[string]string{"NO_COLOR": "1"}, true},
		{"never beats FORCE_COLOR", "never", map[string]string{tty: "80", "FORCE_COLOR": "1"}, false},
		{"NO_COLOR", "", map[string]string{tty: "80", "NO_COLOR": "1"}, false},
		{"NO_COLOR beats FORCE_COLOR", "", map[string]string{"NO_COLOR": "1", "FORCE_COLOR": "1"}, false},
		{"empty NO_COLOR", "", map[string]string{tty: "80", "NO_COLOR": ""}, true},
		{"FORCE_COLOR in a pipe", "", map[string]string{"FORCE_COLOR": "1"}, true},
		{"FORCE_COLOR zero", "", map[string]string{"FORCE_COLOR": "0"}, false},
		{"CLICOLOR_FORCE in a pipe", "", map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{"CLICOLOR_FORCE beats dumb", "", map[string]string{"CLICOLOR_FORCE": "1", "TERM": "dumb"}, true},
		{"dumb terminal", "", map[string]string{tty: "80", "TERM": "dumb"}, false},
		{"IDEM_COLOR", "", map[string]string{"IDEM_COLOR": "always", "NO_COLOR": "1"}, true},
		{"flag beats IDEM_COLOR", "never", map[string]string{tty: "80", "IDEM_COLOR": "always"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			term, err := Detect(new(bytes.Buffer), environ(tt.env), tt.flag)
			require.NoError(t, err)
			require.Equal(t, tt.want, term.Color)
		})
	}
}

func TestDetectSize(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	require.False(t, IsTTY(file))

	term, err := Detect(file, environ(map[string]string{"COLUMNS": "100"}), "")
	require.NoError(t, err)
	require.Equal(t, Terminal{}, term)

	term, err = Detect(file, environ(map[string]string{"IDEM_FORCE_TTY": "120", "NO_COLOR": "1"}), "")
	require.NoError(t, err)
	require.Equal(t, Terminal{IsTTY: true, Width: 120}, term)
}

func TestDetectErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		flag string
		env  map[string]string
		want string
	}{
		{"flag", "yes", nil, `invalid --color "yes": use auto, always or never`},
		{"IDEM_COLOR", "", map[string]string{"IDEM_COLOR": "1"}, `invalid IDEM_COLOR "1": use auto, always or never`},
		{"forced width", "", map[string]string{"IDEM_FORCE_TTY": "-1"}, `invalid IDEM_FORCE_TTY "-1": use a number of columns`},
		{"forced zero width", "", map[string]string{"IDEM_FORCE_TTY": "0"}, `invalid IDEM_FORCE_TTY "0": use a number of columns`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Detect(new(bytes.Buffer), environ(tt.env), tt.flag)
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	color := Terminal{Color: true}
	require.Equal(t, "\x1b[31mno\x1b[0m", color.Red("no"))
	require.Equal(t, "\x1b[33mno\x1b[0m", color.Yellow("no"))
	require.Equal(t, "\x1b[32mno\x1b[0m", color.Green("no"))
	require.Equal(t, "\x1b[2mno\x1b[0m", color.Dim("no"))
	require.Equal(t, "\x1b[1mno\x1b[0m", color.Bold("no"))
	require.Equal(t, "no", color.Paint(Plain, "no"))
	require.Empty(t, color.Red(""))
	require.Equal(t, "no", Terminal{IsTTY: true}.Red("no"))
}
