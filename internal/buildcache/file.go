package buildcache

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// Files with these prefixes are only there while a function of this file runs, or after a crash of it.
const unfinishedPrefix, probePrefix = ".new-", ".try-"

// readFlags open a file for reading. O_NONBLOCK keeps a named pipe from blocking the caller.
const readFlags = os.O_RDONLY | syscall.O_NONBLOCK

// readRegular reads and closes f, which must be a regular file of at most MaxBytes.
func readRegular(f *os.File) ([]byte, fs.FileMode, error) {
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, errors.New("it is not a regular file")
	case info.Size() > MaxBytes:
		return nil, 0, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	data := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	if _, err := data.ReadFrom(io.LimitReader(f, MaxBytes+1)); err != nil {
		return nil, 0, err
	}
	if data.Len() > MaxBytes { // it has grown since
		return nil, 0, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	return data.Bytes(), info.Mode(), nil
}

// readIn is readRegular of the file with this name below root, which others may not write.
func readIn(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, readFlags, 0)
	if err != nil {
		return nil, err
	}
	data, mode, err := readRegular(f)
	if err == nil && mode.Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others may write it (mode %04o); chmod 0600 it if it is as it was written", mode.Perm())
	}
	return data, err
}

// writeAtomic writes the parts as one file: a whole one or none, even if the program or the machine stops
// meanwhile.
func writeAtomic(root *os.Root, name string, parts ...[]byte) (err error) {
	unfinished := path.Join(path.Dir(name), unfinishedPrefix+rand.Text())
	f, err := root.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Remove(unfinished))
		}
	}()
	for _, part := range parts {
		if _, err = f.Write(part); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(unfinished, name)
}

// probeWrite returns an error if no file can be made in the folder.
func probeWrite(root *os.Root, folder string) error {
	name := path.Join(folder, probePrefix+rand.Text())
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), root.Remove(name))
}
