package runtime

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley"
)

// Bounds of reading a pipe after its program has ended. Another process may still hold the pipe open.
const (
	leftWait = 200 * time.Millisecond
	leftSize = 1 << 20
)

// Piece is a line of a program's output in UTF-8, with its newline if it has one. Or it is the error that ended the
// output.
type Piece struct {
	Text string
	Err  error
}

// LineReader reads one of a program's pipes in lines, no faster than its Pieces are received.
type LineReader struct {
	file   *os.File
	exited <-chan struct{} // closed when the program has ended
	strict bool            // a line longer than limit is an error and ends the output; otherwise it is cut
	limit  int
	Pieces chan Piece // closed at the end of the output

	abandoned chan struct{}
	mu        sync.Mutex
	quiet     []chan struct{} // closed when the pipe is empty
	leaving   bool            // the program has ended, and the rest of the pipe is being read
	left      int             // bytes of that rest
	ended     bool            // the output has ended
}

func newLineReader(f *os.File, exited <-chan struct{}, strict bool, limit int) *LineReader {
	return &LineReader{file: f, exited: exited, strict: strict, limit: limit, Pieces: make(chan Piece), abandoned: make(chan struct{})}
}

// read reads until the pipe or the program ends, or until abandon.
func (s *LineReader) read() {
	defer s.end()
	go s.wake()
	var held []byte
	chunk := make([]byte, 32<<10)
	for {
		n, err := s.next(chunk)
		scanned := len(held)
		held = append(held, chunk[:n]...)
		var ok bool
		if held, ok = s.lines(held, scanned); !ok {
			return
		}
		nudges := s.nudges(n, err)
		if (err != nil || nudges != nil) && len(held) > 0 {
			if !s.give(held) {
				return
			}
			held = held[:0]
		}
		for _, done := range nudges {
			close(done)
		}
		if err != nil {
			return
		}
	}
}

// wake interrupts a blocked read when the program has ended.
func (s *LineReader) wake() {
	select {
	case <-s.exited:
		s.nudge()
	case <-s.abandoned:
	}
}

// nudge interrupts a blocked read.
func (s *LineReader) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving {
		s.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// next reads the next bytes. It returns 0 bytes and no error if the read was interrupted and the pipe is empty.
func (s *LineReader) next(chunk []byte) (int, error) {
	if s.hasEnded() {
		return s.nextLeft(chunk)
	}
	n, err := s.file.Read(chunk)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if s.hasEnded() {
		return s.nextLeft(chunk)
	}
	s.file.SetReadDeadline(time.Time{})
	if s.hasEnded() {
		return s.nextLeft(chunk)
	}
	n = readNow(s.file, chunk)
	if n > 0 {
		s.nudge() // there may be more
	}
	return n, nil
}

func (s *LineReader) nextLeft(chunk []byte) (int, error) {
	if s.left > leftSize {
		return 0, os.ErrClosed
	}
	s.mu.Lock()
	s.leaving = true
	s.file.SetReadDeadline(time.Now().Add(leftWait))
	s.mu.Unlock()
	n, err := s.file.Read(chunk)
	s.left += n
	return n, err
}

func (s *LineReader) hasEnded() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// end closes Pieces and releases all callers of WhenQuiet.
func (s *LineReader) end() {
	close(s.Pieces)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, done := range s.quiet {
		close(done)
	}
}

// WhenQuiet returns a channel that is closed when all output up to now has been received from Pieces.
func (s *LineReader) WhenQuiet() <-chan struct{} {
	done := make(chan struct{})
	s.mu.Lock()
	if s.ended {
		close(done)
	} else {
		s.quiet = append(s.quiet, done)
	}
	s.mu.Unlock()
	s.nudge()
	return done
}

// nudges takes the channels to close if the pipe is empty.
func (s *LineReader) nudges(n int, err error) []chan struct{} {
	if n > 0 && err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.quiet
	s.quiet = nil
	return waiting
}

// lines sends the whole lines in held and returns the rest. The first scanned bytes have no newline.
func (s *LineReader) lines(held []byte, scanned int) ([]byte, bool) {
	rest := held
	for {
		end := bytes.IndexByte(rest[scanned:], '\n') + scanned
		if end < scanned {
			end = len(rest)
		}
		switch {
		case end > s.limit && s.strict:
			s.put(Piece{Err: parley.Refuse(parley.TooLarge, "a line of the program is longer than %d bytes", s.limit)})
			return nil, false
		case end > s.limit:
			end = CutAt(rest, s.limit)
		case end == len(rest):
			return append(held[:0], rest...), true
		default:
			end++
		}
		if !s.give(rest[:end]) {
			return nil, false
		}
		rest, scanned = rest[end:], 0
	}
}

func (s *LineReader) give(text []byte) bool {
	return s.put(Piece{Text: strings.ToValidUTF8(string(text), string(utf8.RuneError))})
}

func (s *LineReader) put(p Piece) bool {
	select {
	case s.Pieces <- p:
		return true
	case <-s.abandoned:
		return false
	}
}

// abandon ends the reader, and drops the rest of the output.
func (s *LineReader) abandon() {
	close(s.abandoned)
	s.file.Close()
}

// CutAt returns the index of at most limit at which text can be cut between two characters.
func CutAt[T string | []byte](text T, limit int) int {
	for end := limit; end > limit-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return limit
}
