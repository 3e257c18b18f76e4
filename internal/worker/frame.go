package worker

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/catalogd/catalogd/internal/wire"
)

// The kinds of frames, with who sends them, in the order in which they first come.
const (
	frameSetup   = 's' // parent: compileSetup
	frameHello   = 'h' // child: hello
	frameRequest = 'r' // parent: request
	frameBegin   = 'b' // child: stepBegan
	frameEnd     = 'e' // child: stepEnded
	frameMemory  = 'm' // child: memory
	frameRead    = 't' // child: toolsRead
	framePart    = 'p' // child: part
	frameDone    = 'd' // child: done

	// Those of a child that checks calls, besides frameHello.
	frameCheckSetup = 'R' // parent: checkSetup
	framePackage    = 'P' // parent: packageSources
	frameForget     = 'F' // parent: forgetPackages
	frameCheck      = 'C' // parent: checkRequest
	frameLoading    = 'L' // child: empty; it builds a package first
	frameLoaded     = 'B' // child: empty; the package is built, the evaluation begins
	frameChecked    = 'A' // child: checkResult

	// Those of a child that runs jq programs, besides frameHello.
	frameProgramSetup = 'Q' // parent: programSetup
	frameProgram      = 'J' // parent: programRequest
	frameProgramRan   = 'O' // child: programResult
)

const (
	// maxParentFrame caps the payload of a frame to the child, which may have the sources of a whole catalog.
	maxParentFrame = 1 << 30
	// maxChildFrame caps the payload of a frame from the child.
	maxChildFrame = 16 << 20
)

// frameHeader is the size of a frame's header, in bytes.
const frameHeader = 5

// frame is an encoded message. On the pipe, a header has the length of the payload in four bytes and the kind
// in one.
type frame struct {
	kind    byte
	payload []byte
}

// readFrame reads one frame whose payload has at most limit bytes. It allocates for the bytes that come,
// whatever the header says. The error is io.EOF only where the stream ends between two frames.
func readFrame(r io.Reader, limit int) (frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:4]))
	if n > int64(limit) {
		return frame{}, fmt.Errorf("a frame of kind %q has %d bytes, more than the %d that are allowed",
			head[4], n, limit)
	}
	var payload bytes.Buffer
	if _, err := io.CopyN(&payload, r, n); err != nil {
		return frame{}, fmt.Errorf("a frame of kind %q ends early: %w", head[4], io.ErrUnexpectedEOF)
	}
	return frame{head[4], payload.Bytes()}, nil
}

// decode decodes the payload as a message of the expected kind.
func (f frame) decode(kind byte, into any) error {
	if f.kind != kind {
		return fmt.Errorf("a frame of kind %q came in the place of one of kind %q", f.kind, kind)
	}
	if err := wire.Unmarshal(f.payload, into); err != nil {
		return fmt.Errorf("a frame of kind %q can't be read: %w", f.kind, err)
	}
	return nil
}

// frameWriter writes frames. It is safe for concurrent use.
type frameWriter struct {
	mu  sync.Mutex
	out io.Writer
}

// write encodes a message and writes it without buffering, so that a stepBegan reaches the parent before the
// step can hang.
func (w *frameWriter) write(kind byte, message any) error {
	payload := wire.Marshal(message)
	buf := make([]byte, frameHeader, frameHeader+len(payload))
	binary.BigEndian.PutUint32(buf, uint32(len(payload)))
	buf[4] = kind
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(buf, payload...))
	return err
}
