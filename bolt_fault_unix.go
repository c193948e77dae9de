//go:build unix

package idem

import "syscall"

var noSpaceErrnos = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
