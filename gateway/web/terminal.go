package web

import (
	"html/template"
	"strconv"
	"strings"

	"parley/gateway/sanitize"
)

// terminalText renders text that a program wrote for a terminal as HTML. It keeps colours and weights, as classes. A
// line that was returned to with \r replaces the line before. It drops other control sequences, and shows the remaining
// control characters as escapes. No sequence hides text: an unfinished one is shown.
func terminalText(s string) template.HTML {
	t := &terminalReader{}
	s = strings.ToValidUTF8(s, "\uFFFD")
	for s != "" {
		switch s[0] {
		case '\n':
			t.endLine()
			s = s[1:]
		case '\r':
			t.returned = true
			s = s[1:]
		case '\a':
			s = s[1:]
		case '\x1b':
			length, params := sequence(s)
			if length == 0 {
				t.write(s[:1])
				length = 1
			}
			t.style.set(params)
			s = s[length:]
		default:
			end := strings.IndexAny(s, "\n\r\a\x1b")
			if end < 0 {
				end = len(s)
			}
			t.write(s[:end])
			s = s[end:]
		}
	}
	return template.HTML(t.done.String() + t.lineHTML())
}

// terminalReader collects lines of terminal text.
type terminalReader struct {
	done     strings.Builder // HTML of the lines before
	line     []terminalSpan
	style    terminalStyle
	returned bool // the next text replaces the line
}

// terminalSpan is text in one style.
type terminalSpan struct {
	style terminalStyle
	text  string
}

func (t *terminalReader) write(text string) {
	if t.returned {
		t.line, t.returned = nil, false
	}
	t.line = append(t.line, terminalSpan{t.style, text})
}

func (t *terminalReader) endLine() {
	t.done.WriteString(t.lineHTML())
	t.done.WriteByte('\n')
	t.line, t.returned = nil, false
}

// lineHTML returns the HTML of the line that is collected.
func (t *terminalReader) lineHTML() string {
	var b strings.Builder
	for i := 0; i < len(t.line); {
		style := t.line[i].style
		var same strings.Builder
		for ; i < len(t.line) && t.line[i].style == style; i++ {
			same.WriteString(t.line[i].text)
		}
		text := template.HTMLEscapeString(sanitize.Lines(same.String()))
		if class := style.class(); class != "" {
			b.WriteString(`<span class="` + class + `">` + text + "</span>")
		} else {
			b.WriteString(text)
		}
	}
	return b.String()
}

// Bounds of control sequences. A longer one is shown as text.
const (
	maxControl = 64   // bytes of a control sequence
	maxCommand = 2048 // bytes of a command to the terminal, such as the address of a link
)

// sequence returns the length of the control sequence at the beginning of a text. If it selects a style, it also
// returns its parameters. The length is 0 if there is no whole sequence.
func sequence(s string) (length int, params string) {
	if len(s) < 2 {
		return 0, ""
	}
	switch c := s[1]; {
	case c == '[':
		for i := 2; i < min(len(s), maxControl); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				if s[i] == 'm' && strings.Trim(s[2:i], "0123456789;:") == "" {
					params = s[2:i] + ";"
				}
				return i + 1, params
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return 0, ""
			}
		}
	case strings.IndexByte("]PX^_", c) >= 0:
		for i := 2; i < min(len(s), maxCommand) && s[i] != '\n'; i++ {
			if s[i] == '\a' && c == ']' {
				return i + 1, ""
			}
			if s[i] == '\x1b' {
				if strings.HasPrefix(s[i:], "\x1b\\") {
					return i + 2, ""
				}
				return 0, ""
			}
		}
	case c >= 0x20 && c < 0x30:
		if len(s) > 2 && s[2] >= 0x30 && s[2] < 0x7f {
			return 3, ""
		}
	case c >= 0x30 && c < 0x7f:
		return 2, ""
	}
	return 0, ""
}

// terminalStyle is how text is shown. A colour is one of the 16 of a terminal, counted from 1; 0 is none.
type terminalStyle struct {
	text, ground                                     uint8
	bold, faint, italic, underlined, struck, reverse bool
}

// set changes the style as the parameters of a sequence say. It ignores concealed text.
func (s *terminalStyle) set(params string) {
	if params == "" {
		return
	}
	codes := strings.Split(strings.TrimSuffix(params, ";"), ";")
	for len(codes) > 0 {
		n, _ := strconv.Atoi(strings.SplitN(codes[0], ":", 2)[0]) // an empty one is 0
		switch used, colour := colourOf(codes); {
		case n == 38:
			s.text, codes = colour, codes[used:]
		case n == 48:
			s.ground, codes = colour, codes[used:]
		default:
			s.apply(n)
			codes = codes[1:]
		}
	}
}

func (s *terminalStyle) apply(n int) {
	switch {
	case n == 0:
		*s = terminalStyle{}
	case n == 1:
		s.bold = true
	case n == 2:
		s.faint = true
	case n == 3:
		s.italic = true
	case n == 4:
		s.underlined = true
	case n == 7:
		s.reverse = true
	case n == 9:
		s.struck = true
	case n == 22:
		s.bold, s.faint = false, false
	case n == 23:
		s.italic = false
	case n == 24:
		s.underlined = false
	case n == 27:
		s.reverse = false
	case n == 29:
		s.struck = false
	case n >= 30 && n <= 37:
		s.text = uint8(n - 30 + 1)
	case n == 39:
		s.text = 0
	case n >= 40 && n <= 47:
		s.ground = uint8(n - 40 + 1)
	case n == 49:
		s.ground = 0
	case n >= 90 && n <= 97:
		s.text = uint8(n - 90 + 9)
	case n >= 100 && n <= 107:
		s.ground = uint8(n - 100 + 9)
	}
}

// colourOf returns the colour that codes such as 38;5;208 or 38:2::255:135:0 name, and how many of the codes do.
func colourOf(codes []string) (used int, colour uint8) {
	parts, used := codes, 1
	if strings.Contains(codes[0], ":") {
		parts = strings.Split(codes[0], ":")
		if len(parts) == 6 && parts[1] == "2" {
			parts = append(parts[:2:2], parts[3:]...) // without the colour space
		}
	} else if len(codes) > 1 {
		used = min(len(codes), map[string]int{"5": 3, "2": 5}[codes[1]])
	}
	number := func(i int) int {
		if i >= len(parts) {
			return 0
		}
		n, _ := strconv.Atoi(parts[i]) // an empty one is 0
		return min(n, 255)
	}
	switch {
	case len(parts) > 2 && parts[1] == "5":
		return max(used, 1), nearestColour(number(2))
	case len(parts) > 4 && parts[1] == "2":
		return max(used, 1), nearestOf(number(2), number(3), number(4))
	}
	return max(used, 1), 0
}

// nearestColour returns one of the 16 colours for one of 256.
func nearestColour(n int) uint8 {
	switch {
	case n < 16:
		return uint8(n + 1)
	case n < 232:
		level := func(n int) int { return min(n, 1)*55 + n*40 }
		n -= 16
		return nearestOf(level(n/36), level(n/6%6), level(n%6))
	}
	grey := (n-232)*10 + 8
	return nearestOf(grey, grey, grey)
}

// nearestOf returns the one of the 16 colours that is most like a colour.
func nearestOf(red, green, blue int) uint8 {
	best, least := uint8(0), 1<<30
	for i := range uint8(16) {
		level := func(bit uint8) int {
			switch {
			case i == 8:
				return 127
			case i == 7:
				return 200
			case i>>bit&1 == 0:
				return 0
			case i > 8:
				return 255
			}
			return 180
		}
		r, g, b := red-level(0), green-level(1), blue-level(2)
		if off := r*r + g*g + b*b; off < least {
			best, least = i+1, off
		}
	}
	return best
}

// class returns the classes of the style.
func (s terminalStyle) class() string {
	var names []string
	if s.text > 0 {
		names = append(names, "f"+strconv.Itoa(int(s.text-1)))
	}
	if s.ground > 0 {
		names = append(names, "g"+strconv.Itoa(int(s.ground-1)))
	}
	for _, c := range []struct {
		is   bool
		name string
	}{{s.bold, "bold"}, {s.faint, "faint"}, {s.italic, "italic"}, {s.underlined, "under"}, {s.struck, "struck"}, {s.reverse, "reverse"}} {
		if c.is {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, " ")
}
