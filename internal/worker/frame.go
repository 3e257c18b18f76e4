package worker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/catalogd/catalogd/internal/plain"
)

// The kinds of frames, in the order in which a child's life meets them.
const (
	frameSetup   = 's' // parent: what the child is to know once
	frameHello   = 'h' // child: it is ready
	frameRequest = 'r' // parent: compile this
	frameBegin   = 'b' // child: a step begins
	frameEnd     = 'e' // child: a step has ended
	frameMemory  = 'm' // child: it uses so much memory
	framePart    = 'p' // child: a part of the answer
	frameDone    = 'd' // child: the answer is complete

	// Of a child that checks calls, whose hello is the same.
	frameRules   = 'R' // parent: what the child is to know once
	framePackage = 'P' // parent: the sources of a package
	frameForget  = 'F' // parent: packages that no call needs any more
	frameCheck   = 'C' // parent: check this call
	frameLoading = 'L' // child: it builds a package first
	frameLoaded  = 'B' // child: it has done so, and evaluates
	frameChecked = 'A' // child: the answer
)

const (
	// maxRequest caps a frame to the child, which holds the sources that it doesn't have yet.
	maxRequest = 1 << 30
	// maxFrame caps a frame from the child.
	maxFrame = 16 << 20
)

// frameHead is how many bytes of a frame stand before its payload.
const frameHead = 5

// frame is a message as it travels: its length in four bytes, its kind in one, then the payload.
type frame struct {
	kind    byte
	payload []byte
}

// readFrame reads one frame whose payload is at most limit bytes. Memory is taken as the payload comes, not as its length
// says. The error is io.EOF only where the stream ends between two frames.
func readFrame(r io.Reader, limit int) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:4]))
	if n > int64(limit) {
		return frame{}, fmt.Errorf("a frame of kind %q has %d bytes, more than the %d that are allowed", head[4], n, limit)
	}
	var payload bytes.Buffer
	if _, err := io.CopyN(&payload, r, n); err != nil {
		return frame{}, fmt.Errorf("a frame of kind %q ends early: %w", head[4], io.ErrUnexpectedEOF)
	}
	return frame{head[4], payload.Bytes()}, nil
}

// decode reads the payload as a message of the kind that it is expected to be.
func (f frame) decode(kind byte, into any) error {
	if f.kind != kind {
		return fmt.Errorf("a frame of kind %q came in the place of one of kind %q", f.kind, kind)
	}
	if err := plain.Unmarshal(f.payload, into); err != nil {
		return fmt.Errorf("a frame of kind %q can't be read: %w", f.kind, err)
	}
	return nil
}

// frameWriter writes whole frames, from several goroutines at once.
type frameWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// write encodes a message and writes it, in one call, so that a begin reaches the parent before the step can hang.
func (w *frameWriter) write(kind byte, message any) error {
	payload := plain.Marshal(message)
	buf := make([]byte, frameHead, frameHead+len(payload))
	binary.BigEndian.PutUint32(buf, uint32(len(payload)))
	buf[4] = kind
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(buf, payload...))
	return err
}
