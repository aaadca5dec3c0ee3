package config

import (
	"bytes"
	"io/fs"
	"path"
	"time"
)

// Overlay is a file system in which some files have another text, whether they are there or not: an edit before it is
// written, a candidate, an old generation.
type Overlay struct {
	fs.FS
	Files map[string][]byte // instead of those of FS, by path
}

// Open gives the replaced file, or that of the file system below.
func (o Overlay) Open(name string) (fs.File, error) {
	data, ok := o.Files[name]
	if !ok {
		return o.FS.Open(name)
	}
	return &replaced{Reader: bytes.NewReader(data), info: replacedInfo{path.Base(name), int64(len(data))}}, nil
}

// replaced is a file with another text.
type replaced struct {
	*bytes.Reader
	info replacedInfo
}

func (r *replaced) Stat() (fs.FileInfo, error) { return r.info, nil }
func (r *replaced) Close() error               { return nil }

// replacedInfo says that only the owner may read the file: what stands in memory was allowed to be read once.
type replacedInfo struct {
	name string
	size int64
}

func (i replacedInfo) Name() string       { return i.name }
func (i replacedInfo) Size() int64        { return i.size }
func (i replacedInfo) Mode() fs.FileMode  { return 0o400 }
func (i replacedInfo) ModTime() time.Time { return time.Time{} }
func (i replacedInfo) IsDir() bool        { return false }
func (i replacedInfo) Sys() any           { return nil }
