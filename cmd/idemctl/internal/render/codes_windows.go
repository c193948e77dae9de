package render

import (
	"io"
	"syscall"
)

const enableVirtualTerminalProcessing = 0x4

// acceptsCodes switches the console behind w to interpret colour codes, which
// the classic console does only on request, and reports whether it does. The
// syscall package has no SetConsoleMode, hence the call by name.
func acceptsCodes(w io.Writer) bool {
	fd, ok := descriptor(w)
	if !ok {
		return false
	}
	handle := syscall.Handle(fd)
	var mode uint32
	if err := syscall.GetConsoleMode(handle, &mode); err != nil {
		return false
	}
	if mode&enableVirtualTerminalProcessing != 0 {
		return true
	}
	setConsoleMode := syscall.NewLazyDLL("kernel32.dll").NewProc("SetConsoleMode")
	done, _, _ := setConsoleMode.Call(uintptr(handle), uintptr(mode|enableVirtualTerminalProcessing))
	return done != 0
}
