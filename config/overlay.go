package config

import (
	"bytes"
	"io"
	"io/fs"
)

// Overlay is a file system in which some files have another text: for loading an edit before it is written.
type Overlay struct {
	fs.FS
	Files []File // instead of those of FS, by Path
}

// Open gives the replaced file, or that of the file system below. A replaced file keeps the mode of the one below.
func (o Overlay) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	if err != nil {
		return nil, err
	}
	for i := range o.Files {
		if o.Files[i].Path == name {
			return &replaced{File: f, text: bytes.NewReader(o.Files[i].Data)}, nil
		}
	}
	return f, nil
}

// replaced is a file with another text.
type replaced struct {
	fs.File
	text io.Reader
}

func (r *replaced) Read(p []byte) (int, error) { return r.text.Read(p) }
