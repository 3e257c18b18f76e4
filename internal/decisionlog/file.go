package decisionlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/catalogd/catalogd/internal/filelock"
)

// File is a Sink that appends to a file and rotates it. Only its owner may read it. Several processes may write one
// file: each write and rotation holds a lock on it.
type File struct {
	name     string
	max      int64
	keep     int
	file     *os.File
	size     int64
	previous Previous
}

// openTime bounds how long OpenFile waits for another process that writes the file, and writeTime how long one attempt
// of a write does, so that a process which is stopped in the middle is reported.
const (
	openTime  = 10 * time.Second
	writeTime = 2 * time.Second
)

// OpenFile opens the file of that name for appending, and creates it if needed. Before it would grow over max
// bytes, it is renamed to NAME.1, NAME.1 to NAME.2 and so on; at most keep old files are kept. A torn last
// line gets a line end, so that what follows can be read.
func OpenFile(name string, max int64, keep int) (*File, error) {
	f := &File{name: name, max: max, keep: keep}
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	if err := f.hold(ctx); err != nil {
		return nil, err
	}
	if err := f.lookBack(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the end of %s: %w", name, err), f.file.Close())
	}
	return f, f.letGo()
}

// hold locks the file of that name, which it opens where it is not open or another process has rotated it since, and
// reads its size. A file system without locks is one for a single process.
func (f *File) hold(ctx context.Context) error {
	for {
		if f.file == nil {
			if err := f.open(); err != nil {
				return err
			}
		}
		if err := filelock.Lock(ctx, f.file); ctx.Err() != nil && err != nil {
			return fmt.Errorf("%w; continue or end that one, or log to another file", err)
		} else if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		info, err := f.file.Stat()
		if err != nil {
			return errors.Join(err, f.letGo())
		}
		if named, err := os.Stat(f.name); err == nil && os.SameFile(info, named) {
			f.size = info.Size()
			return nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, f.letGo())
		}
		if err := f.shut(); err != nil {
			return err
		}
	}
}

// letGo ends what hold began.
func (f *File) letGo() error {
	if f.file == nil {
		return nil
	}
	if err := filelock.Unlock(f.file); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// shut closes the file, and so unlocks it.
func (f *File) shut() error {
	err := f.file.Close()
	f.file = nil
	return err
}

func (f *File) open() error {
	file, err := os.OpenFile(f.name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", f.name)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// endLine ends the last line of the file, which is held, if a write of this or another process did not get that far.
func (f *File) endLine() error {
	if f.size == 0 {
		return nil
	}
	var last [1]byte
	if _, err := f.file.ReadAt(last[:], f.size-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := f.file.Write([]byte("\n"))
	f.size += int64(n)
	return err
}

// maxLine is how much of the end is read to find its last line.
const maxLine = 4 << 20

// lookBack reads how the previous run ended.
func (f *File) lookBack() error {
	if f.size == 0 {
		return nil
	}
	end := make([]byte, min(f.size, maxLine))
	if _, err := f.file.ReadAt(end, f.size-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.HasSuffix(end, []byte("\n")) {
		f.previous.Torn = true
		if err := f.endLine(); err != nil {
			return err
		}
		end = end[:bytes.LastIndexByte(end, '\n')+1]
	}
	end = bytes.TrimSuffix(end, []byte("\n"))
	var last struct {
		Labels struct{ Run string }
		Custom struct {
			Seq  uint64
			What string
		}
	}
	// A line of another program says nothing about a run.
	if json.Unmarshal(end[bytes.LastIndexByte(end, '\n')+1:], &last) == nil {
		f.previous.Run, f.previous.Seq = last.Labels.Run, last.Custom.Seq
		f.previous.Closed = last.Custom.What == "closed" && !f.previous.Torn
	}
	return nil
}

// Previous implements Sink.
func (f *File) Previous() Previous { return f.previous }

// Write implements Sink. What was written before an error stays in the file, and is written again by the
// retry. It fails where another process keeps the file locked for writeTime.
func (f *File) Write(ctx context.Context, lines []byte) (err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	defer func() { err = errors.Join(err, f.letGo()) }()
	if err := f.hold(ctx); err != nil {
		return err
	}
	if err := f.endLine(); err != nil {
		return fmt.Errorf("ending the last line of %s: %w", f.name, err)
	}
	for len(lines) > 0 {
		n := f.fitting(lines)
		if n == 0 {
			if err := f.rotate(ctx); err != nil {
				return fmt.Errorf("rotating: %w", err)
			}
			continue // with an empty file, or what another process has begun
		}
		written, err := f.file.Write(lines[:n])
		f.size += int64(written)
		if err != nil {
			return err // what is cut off then, the next write or start ends
		}
		lines = lines[n:]
	}
	return nil
}

// fitting returns how many bytes of whole lines still fit in the file: at least one line if it is empty.
func (f *File) fitting(lines []byte) int {
	room := max(0, min(f.max-f.size, int64(len(lines))))
	n := bytes.LastIndexByte(lines[:room], '\n') + 1
	if n == 0 && f.size == 0 {
		n = bytes.IndexByte(lines, '\n') + 1
	}
	return n
}

// rotate renames the file, which is held, and holds the next one.
func (f *File) rotate(ctx context.Context) error {
	old := func(i int) string { return fmt.Sprintf("%s.%d", f.name, i) }
	if err := os.Remove(old(f.keep)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i := f.keep - 1; i >= 1; i-- {
		if err := os.Rename(old(i), old(i+1)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var err error
	if f.keep > 0 {
		err = os.Rename(f.name, old(1))
	} else {
		err = os.Remove(f.name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.shut(); err != nil {
		return err
	}
	if err := f.hold(ctx); err != nil {
		return err
	}
	return f.endLine()
}

// Close implements Sink.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	return errors.Join(f.file.Sync(), f.file.Close())
}

// Stream is a Sink that writes to w, such as standard output, and closes nothing.
type Stream struct{ W io.Writer }

// Previous implements Sink.
func (Stream) Previous() Previous { return Previous{} }

// Write implements Sink.
func (s Stream) Write(_ context.Context, lines []byte) error {
	_, err := s.W.Write(lines)
	return err
}

// Close implements Sink.
func (Stream) Close() error { return nil }
