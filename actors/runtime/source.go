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

// What is read after a program has ended is what it left in its pipe: at most a pipe's size, and without waiting long
// for a process that left the group and keeps the pipe open.
const (
	leftWait = 200 * time.Millisecond
	leftSize = 1 << 20
)

// piece is a line of what a program puts out, with its end if it has one, in UTF-8; or why there is no more.
type piece struct {
	text string
	err  error
}

// source reads one of a program's pipes, no faster than its pieces are taken.
type source struct {
	file   *os.File
	exited <-chan struct{} // the program has
	strict bool            // a line longer than limit is an error, and the end; otherwise it is cut
	limit  int
	pieces chan piece // closed at the end

	abandoned chan struct{}
	mu        sync.Mutex
	quiet     []chan struct{} // to be closed when all that is there was read
	leaving   bool            // the program has ended, and what it left is read
	left      int             // how much that was
	ended     bool            // nothing more is read
}

func newSource(f *os.File, exited <-chan struct{}, strict bool, limit int) *source {
	return &source{file: f, exited: exited, strict: strict, limit: limit, pieces: make(chan piece), abandoned: make(chan struct{})}
}

// read reads until the end of the pipe or of the program, or until it is abandoned.
func (s *source) read() {
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

// wake has a read that waits look again once the program has ended.
func (s *source) wake() {
	select {
	case <-s.exited:
		s.nudge()
	case <-s.abandoned:
	}
}

// nudge has a read that waits look again.
func (s *source) nudge() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.leaving {
		s.file.SetReadDeadline(time.Unix(1, 0))
	}
}

// next reads what comes next. It gives nothing and no error if it was asked whether all is read, and it is.
func (s *source) next(chunk []byte) (int, error) {
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

func (s *source) nextLeft(chunk []byte) (int, error) {
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

func (s *source) hasEnded() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// end says that there is no more.
func (s *source) end() {
	close(s.pieces)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, done := range s.quiet {
		close(done)
	}
}

// whenQuiet gives a channel that is closed once all that the program has put out by now was taken.
func (s *source) whenQuiet() <-chan struct{} {
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

// nudges gives those who wait for quiet, if it is.
func (s *source) nudges(n int, err error) []chan struct{} {
	if n > 0 && err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.quiet
	s.quiet = nil
	return waiting
}

// lines gives the lines in held, whose first bytes were looked at before, and returns the rest.
func (s *source) lines(held []byte, scanned int) ([]byte, bool) {
	rest := held
	for {
		end := bytes.IndexByte(rest[scanned:], '\n') + scanned
		if end < scanned {
			end = len(rest)
		}
		switch {
		case end > s.limit && s.strict:
			s.put(piece{err: parley.Refuse(parley.TooLarge, "a line of the program is longer than %d bytes", s.limit)})
			return nil, false
		case end > s.limit:
			end = cutAt(rest, s.limit)
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

func (s *source) give(text []byte) bool {
	return s.put(piece{text: strings.ToValidUTF8(string(text), string(utf8.RuneError))})
}

func (s *source) put(p piece) bool {
	select {
	case s.pieces <- p:
		return true
	case <-s.abandoned:
		return false
	}
}

// abandon has the reader end, whatever it is at.
func (s *source) abandon() {
	close(s.abandoned)
	s.file.Close()
}

// cutAt gives where to cut text that is longer than limit, so that no character is cut through.
func cutAt[T string | []byte](text T, limit int) int {
	for end := limit; end > limit-utf8.UTFMax && end >= 0; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return limit
}
