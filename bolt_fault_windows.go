package idem

import "golang.org/x/sys/windows"

var noSpaceErrnos = []error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL}
