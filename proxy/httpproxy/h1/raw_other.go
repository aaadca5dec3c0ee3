//go:build !linux

package h1

import "syscall"

const haveRaw = false

// Elsewhere than on Linux every connection takes the plain way: init finds no raw access to use.

func rawRead(fd uintptr, b []byte) (int, syscall.Errno)  { return 0, syscall.ENOSYS }
func rawWrite(fd uintptr, b []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
func rawQuiet(fd uintptr) error                          { return nil }
func gone(raw syscall.RawConn) bool                      { return false }
func tuneServer(fd uintptr)                              {}
