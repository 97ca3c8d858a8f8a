package resource

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// struck stands where a secret was.
const struck = "[secret]"

// strike strikes a secret out of what comes back, as it is and in the encodings that servers use: base64 and base32 at any place in
// what is encoded, hex, escapes of URLs, JSON, HTML and quoted-printable, and UTF-16. Each character counts as itself and as any of its
// escapes, since encoders escape some and leave others. Letters in either case count as the same, and line breaks are passed over, as
// encoders wrap lines. A server that means to hide it, by an encoding of its own, can.
type strike struct {
	secret   string   // in lower case
	patterns [][]byte // in lower case, the longest first
}

func newStrike(secret string) *strike {
	all := map[string]bool{}
	add := func(texts ...string) {
		for _, t := range texts {
			if t != "" {
				all[strings.ToLower(t)] = true
			}
		}
	}
	raw := []byte(secret)
	reversed := slices.Clone(raw)
	slices.Reverse(reversed)
	quoted, _ := json.Marshal(secret) // a text always has one
	add(secret, string(reversed), strings.Trim(string(quoted), `"`), html.EscapeString(secret), url.QueryEscape(secret), url.PathEscape(secret), hex.EncodeToString(raw))
	add(each(raw, "%%%02x"), each(raw, `\u%04x`), each(raw, `\x%02x`), each(raw, `\%03o`), each(raw, "&#%d;"), each(raw, "&#x%x;"), each(raw, "=%02x"), each(raw, "%02x "), each(raw, "%02x:"), each(raw, "%d,"), each(raw, "%d, "))
	for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		add(cores(raw, 3, 6, e.EncodeToString)...)
		twice := e.EncodeToString(raw)
		add(cores([]byte(twice), 3, 6, e.EncodeToString)...)
	}
	add(cores(raw, 5, 5, base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString)...)
	var little, big []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	add(string(little), string(big))
	s := &strike{secret: strings.ToLower(strings.NewReplacer(`\n`, "", `\r`, "").Replace(secret))} // as out has the data
	for t := range all {
		s.patterns = append(s.patterns, []byte(t))
	}
	slices.SortFunc(s.patterns, func(a, b []byte) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return bytes.Compare(a, b)
	})
	return s
}

// each returns all bytes in a format, without what the format has behind the last one.
func each(raw []byte, format string) string {
	var b strings.Builder
	for _, c := range raw {
		fmt.Fprintf(&b, format, c)
	}
	return strings.TrimRight(b.String(), ":, ")
}

// cores returns what is the same in the encoding of anything that has the secret in it, for each place in a group of bytes at which
// it may begin. A letter of the encoding has some bits.
func cores(raw []byte, group, bits int, encode func([]byte) string) (all []string) {
	for before := range group {
		text := encode(append(make([]byte, before), raw...))
		first := (before*8 + bits - 1) / bits
		last := (before + len(raw)) * 8 / bits
		if first < last {
			all = append(all, text[first:last])
		}
	}
	return all
}

// longest returns the size of the longest pattern, with the line breaks that may stand in it.
func (s *strike) longest() int { return 2 * max(len(s.patterns[0]), len(s.secret)*maxEscape) }

// maxEscape bounds the escape of one character, in bytes.
const maxEscape = 16

// named are the names that HTML has for characters of ASCII which encoders escape.
var named = map[byte][]string{
	'&': {"amp"}, '<': {"lt"}, '>': {"gt"}, '"': {"quot"}, '\'': {"apos"}, '/': {"sol"}, '+': {"plus"}, '=': {"equals"}, ':': {"colon"}, ';': {"semi"}, '.': {"period"},
	',': {"comma"}, '!': {"excl"}, '#': {"num"}, '$': {"dollar"}, '%': {"percnt"}, '(': {"lpar"}, ')': {"rpar"}, '*': {"ast", "midast"}, '?': {"quest"}, '@': {"commat"},
	'[': {"lsqb", "lbrack"}, ']': {"rsqb", "rbrack"}, '\\': {"bsol"}, '^': {"hat"}, '_': {"lowbar"}, '`': {"grave"}, '{': {"lcub", "lbrace"}, '|': {"vert", "verbar"}, '}': {"rcub", "rbrace"},
}

// charAt returns the length of a character of the secret at the beginning of a text, as it is or escaped; 0 if it is another. Both are in
// lower case.
func charAt(text []byte, c byte) int {
	if len(text) == 0 {
		return 0
	}
	if rest := text[1:]; text[0] == '%' { // escaped once or more often
		n := 1
		for n < maxEscape-3 && bytes.HasPrefix(rest, []byte("25")) {
			rest, n = rest[2:], n+2
		}
		if isHex(rest, 2, c) {
			return n + 2
		}
	}
	switch rest := text[1:]; {
	case text[0] == '=' && isHex(rest, 2, c):
		return 3
	case text[0] == '\\' && len(rest) > 0 && rest[0] == 'u' && isHex(rest[1:], 4, c):
		return 6
	case text[0] == '\\' && len(rest) > 0 && rest[0] == 'x' && isHex(rest[1:], 2, c):
		return 4
	case text[0] == '\\' && len(rest) >= 3 && bytes.Equal(rest[:3], fmt.Appendf(nil, "%03o", c)):
		return 4
	case text[0] == '\\' && len(rest) > 0 && rest[0] == c && !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9'):
		return 2
	case text[0] == '&':
		if n := entityAt(rest, c); n > 0 {
			return 1 + n
		}
	}
	if text[0] == c {
		return 1
	}
	return 0
}

// isHex reports whether a text begins with the code of a character in some hex digits.
func isHex(text []byte, digits int, c byte) bool {
	if len(text) < digits {
		return false
	}
	n, err := strconv.ParseUint(string(text[:digits]), 16, 16)
	return err == nil && isChar(n, c)
}

// isChar reports whether a code is that of a character in lower case.
func isChar(n uint64, c byte) bool {
	if n >= 'A' && n <= 'Z' {
		n += 'a' - 'A'
	}
	return n == uint64(c)
}

// entityAt returns the length of a character in HTML behind the "&".
func entityAt(text []byte, c byte) int {
	end := bytes.IndexByte(text[:min(len(text), maxEscape)], ';')
	if end < 1 {
		return 0
	}
	word, base := string(text[:end]), 10
	if slices.Contains(named[c], word) {
		return end + 1
	}
	digits, ok := strings.CutPrefix(word, "#")
	if !ok {
		return 0
	}
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	if n, err := strconv.ParseUint(digits, base, 16); err != nil || !isChar(n, c) {
		return 0
	}
	return end + 1
}

// secretAt returns the length of the secret at the beginning of a text, each of its characters as it is or escaped; 0 if it is not there.
func (s *strike) secretAt(text []byte) int {
	at := 0
	for i := range len(s.secret) {
		n := charAt(text[at:], s.secret[i])
		if n == 0 {
			return 0
		}
		at += n
	}
	return at
}

// Bounds of what is looked into that is compressed.
const (
	maxUnpacked = 4 << 20 // bytes
	maxPacked   = 3       // one in another
)

// isPacked reports whether data is compressed, whatever its header says, with the secret in it, or with more in it than is looked into. Each
// byte of a file that is compressed depends on those before, so the secret cannot be struck out of it.
func (s *strike) isPacked(data []byte, most int) bool {
	r, err := unpack(data)
	if err != nil {
		return false
	}
	inside, _ := io.ReadAll(io.LimitReader(r, maxUnpacked+1)) // what is cut off may end in the secret all the same
	if len(inside) == 0 {
		return false
	}
	return most == 0 || len(inside) > maxUnpacked || s.find(inside, make([]bool, len(inside)+1), false) || s.find(inside, make([]bool, len(inside)+1), true) ||
		s.isPacked(inside, most-1)
}

// unpack returns a reader of what is compressed in data, and an error if nothing is.
func unpack(data []byte) (io.Reader, error) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return gzip.NewReader(bytes.NewReader(data))
	}
	return zlib.NewReader(bytes.NewReader(data))
}

// out returns the data without the secret.
func (s *strike) out(data []byte) []byte {
	gone := make([]bool, len(data)+1)
	found := s.find(data, gone, false)
	if s.find(data, gone, true) {
		found = true
	}
	if !found {
		return data
	}
	var b []byte
	for i := range data {
		switch {
		case !gone[i]:
			b = append(b, data[i])
		case i == 0 || !gone[i-1]:
			b = append(b, struck...)
		}
	}
	return b
}

// find marks the bytes of the secret in the data, and reports whether there are any. Line breaks are passed over, also as JSON has them, and with
// wrapped the mark too that quoted-printable, shells and programs have before one that is not in the text: the secret may end with the same.
func (s *strike) find(data []byte, gone []bool, wrapped bool) (found bool) {
	// The text without line breaks, in lower case, with the place of each byte.
	flat, places := make([]byte, 0, len(data)), make([]int, 0, len(data))
	for i := 0; i < len(data); i++ {
		if n := breakAt(data[i:], wrapped); n > 0 {
			i += n - 1
			continue
		}
		c := data[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		flat, places = append(flat, c), append(places, i)
	}
	mark := func(at, n int) {
		for i := places[at]; i <= places[at+n-1]; i++ {
			gone[i] = true
		}
		found = true
	}
	for _, p := range s.patterns {
		for from := 0; ; {
			at := bytes.Index(flat[from:], p)
			if at < 0 {
				break
			}
			mark(from+at, len(p))
			from += at + 1
		}
	}
	for at := range flat {
		if n := s.secretAt(flat[at:]); n > 0 {
			mark(at, n)
		}
	}
	return found
}

// breakAt returns the length of a line break at the beginning of a text, as it is or within JSON, and with wrapped with its mark; 0 if there
// is none.
func breakAt(text []byte, wrapped bool) int {
	switch {
	case text[0] == '\r' || text[0] == '\n':
		return 1
	case text[0] == '\\' && len(text) > 1 && (text[1] == 'n' || text[1] == 'r'):
		return 2
	}
	for _, mark := range []string{"=", `\\`, `\`} {
		if n := len(mark); wrapped && len(text) > n && bytes.HasPrefix(text, []byte(mark)) {
			if more := breakAt(text[n:], false); more > 0 {
				return n + more
			}
		}
	}
	return 0
}
