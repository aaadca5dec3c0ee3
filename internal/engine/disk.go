package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// maxFile bounds every file that a configuration names. A file without an end would otherwise take the memory of a
// node that is serving.
const maxFile = 16 << 20

var (
	errNotRegular = errors.New("not a regular file")
	errFileSize   = fmt.Errorf("larger than %d octets", maxFile)
)

// disk is the machine's file system, from its root, as configurations are read from it. A running node reads regular
// files only: a pipe without a writer would hold up every later apply, and status with it.
type disk struct{ regular bool }

// Open implements fs.FS. A file that is too large fails when it is read.
func (d disk) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	flags := os.O_RDONLY
	if d.regular {
		flags |= syscall.O_NONBLOCK // opening a pipe would wait for its writer
	}
	f, err := os.OpenFile("/"+name, flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		return f, nil
	case d.regular && !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: "/" + name, Err: errNotRegular}
	case info.Size() > maxFile:
		err = &fs.PathError{Op: "open", Path: "/" + name, Err: errFileSize}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &bounded{File: f, left: maxFile}, nil
}

// bounded is a file that ends in an error where it is too large; what it says of its size need not be true.
type bounded struct {
	*os.File
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, &fs.PathError{Op: "read", Path: b.Name(), Err: errFileSize}
	}
	n, err := b.File.Read(p[:min(len(p), b.left+1)])
	b.left -= n
	return n, err
}

var _ io.Reader = (*bounded)(nil)
