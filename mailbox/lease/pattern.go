package lease

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
)

// Bounds of patterns.
const (
	MaxPatterns = 16   // of a lease
	maxPattern  = 1024 // bytes
	maxSegments = 64
	maxWild     = 16 // wildcards in one pattern, so that comparing two is cheap
)

// Pattern is what a lease is on: files, as an absolute path with slashes, or a name with a kind before a colon, as in
// port:3000. In a path, * and ? stand for some and for one character of a name, and ** for any number of folders. What is below a
// file or folder that a pattern matches, it covers too.
type Pattern string

// Parse reads a pattern. One of files is relative to a folder, an absolute path, unless it is absolute. It refuses with
// INVALID_ARGUMENT one that covers the whole folder, or almost everything, and one that cannot be compared.
func Parse(text, folder string) (Pattern, error) {
	switch {
	case text == "":
		return "", parley.Refuse(parley.InvalidArgument, "an empty pattern names nothing")
	case len(text) > maxPattern:
		return "", parley.Refuse(parley.TooLarge, "a pattern of %d bytes is over the limit of %d", len(text), maxPattern)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, parley.IsInvisible):
		return "", parley.Refuse(parley.InvalidArgument, "the pattern %s holds characters that do not show", parley.Quoted(text, 80))
	}
	text = capabilities.Normal(text)
	if kind, name, ok := strings.Cut(text, ":"); ok { // as people write it: two who mean one port are to have one lease
		kind, name = strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(name)
		switch {
		case isName(kind+":"+name) && strings.Contains(name, "*"):
			return "", parley.Refuse(parley.InvalidArgument, "the name %s has a *, which stands for nothing else in a name", parley.Quoted(text, 80)).
				WithHint("give each name, as in branch:main branch:next")
		case isName(kind + ":" + name):
			return Pattern(kind + ":" + name), nil
		case isName(kind + ":" + unheard):
			return "", parley.Refuse(parley.InvalidArgument, "the pattern %s has a kind and no name", parley.Quoted(text, 80)).WithHint("give both, as in port:3000")
		}
	}
	if hasDrive(folder) || hasDrive(text) {
		text, folder = strings.ReplaceAll(text, `\`, "/"), strings.ReplaceAll(folder, `\`, "/")
	}
	if !isAbsolute(text) {
		if !isAbsolute(folder) {
			return "", parley.Refuse(parley.InvalidArgument, "the pattern %s is relative to a folder, which is not known", parley.Quoted(text, 80)).
				WithHint("give an absolute path, or a name with its kind, as in port:3000")
		}
		text = folder + "/" + text
	}
	for i, s := range strings.Split(text, "/") {
		if s == ".." && isWild(strings.Join(strings.Split(text, "/")[:i], "/")) {
			return "", parley.Refuse(parley.InvalidArgument, "the pattern %s goes up from a wildcard", parley.Quoted(text, 80))
		}
	}
	p := Pattern(capabilities.Normal(path.Clean(text)))
	if isAbsolute(folder) {
		folder = path.Clean(folder)
	}
	return p, p.check(folder)
}

// check refuses a pattern of files that cannot be compared cheaply, or that covers everything.
func (p Pattern) check(folder string) error {
	segments := strings.Split(string(p), "/")
	wild := 0
	for _, s := range segments {
		if wild += strings.Count(s, "*") + strings.Count(s, "?"); s == "**" {
			wild--
		}
	}
	switch {
	case len(segments) > maxSegments:
		return parley.Refuse(parley.InvalidArgument, "the pattern %s has more than %d folders", parley.Quoted(string(p), 80), maxSegments)
	case wild > maxWild:
		return parley.Refuse(parley.InvalidArgument, "the pattern %s has more than %d wildcards", parley.Quoted(string(p), 80), maxWild)
	case len(p.literal()) < 2 || isAbsolute(folder) && p.coversAll(folder):
		return parley.Refuse(parley.InvalidArgument, "the pattern %s covers everything", parley.Quoted(string(p), 80)).
			WithHint("lease what is worked on: a folder in it, as in src/checkout/**, or some files, as in **/*.sql")
	}
	return nil
}

// unheard is the name of a file that no pattern of somebody's names but by a wildcard for all.
const unheard = "\x01"

// coversAll reports whether the pattern covers whatever file there may be in a folder or, as */* does, at some depth of it. A name of one
// letter is not enough to tell: ??* leaves that out, and *.* names what has no dot in it.
func (p Pattern) coversAll(folder string) bool {
	long := strings.Repeat(unheard, maxWild)
	for range maxWild {
		if p.Covers(path.Join(folder, unheard), false) || p.Covers(path.Join(folder, long+"."+long), false) {
			return true
		}
		folder = path.Join(folder, long)
	}
	return false
}

// literal returns the folders before the first wildcard, without the root.
func (p Pattern) literal() []string {
	segments := strings.Split(strings.TrimPrefix(string(p), "/"), "/")
	if i := slices.IndexFunc(segments, isWild); i >= 0 {
		segments = segments[:i]
	}
	return slices.DeleteFunc(segments, func(s string) bool { return s == "" })
}

// Cut splits a pattern of files before the first wildcard: a path, and the rest without a slash at its beginning. The path of
// any other name is "".
func (p Pattern) Cut() (folder, rest string) {
	if p.IsName() {
		return "", string(p)
	}
	segments := strings.Split(string(p), "/")
	i := slices.IndexFunc(segments, isWild)
	if i < 0 {
		return string(p), ""
	}
	return strings.Join(segments[:i], "/"), strings.Join(segments[i:], "/")
}

// Tree returns the pattern of a path with all that is below it. In the path, * and ? stand for what a shell puts there; one with too many
// of them is of the folder before the first.
func Tree(path string) Pattern {
	path = capabilities.Normal(path)
	p := Pattern(path)
	if strings.Count(path, "*")+strings.Count(path, "?") > maxWild || strings.Count(path, "/") > maxSegments || len(path) > maxPattern {
		at, _ := p.Cut()
		segments := strings.Split(at, "/")
		p = Pattern(strings.Join(segments[:min(len(segments), maxSegments)], "/"))
	}
	return p
}

// IsName reports whether the pattern is a name, and not of files.
func (p Pattern) IsName() bool { return isName(string(p)) }

// Below reports whether all that a pattern of files covers is in a folder, an absolute path.
func (p Pattern) Below(folder string) bool {
	at, _ := p.Cut()
	return at == folder || strings.HasPrefix(at, strings.TrimSuffix(folder, "/")+"/")
}

// isName reports whether a text is a kind of at least two letters, a colon, and something.
func isName(text string) bool {
	kind, rest, ok := strings.Cut(text, ":")
	return ok && rest != "" && len(kind) > 1 && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func isAbsolute(path string) bool { return strings.HasPrefix(path, "/") || hasDrive(path) }

// hasDrive reports whether a path begins with a drive, as in C:\.
func hasDrive(path string) bool {
	return len(path) > 2 && path[1] == ':' && (path[2] == '/' || path[2] == '\\') && (path[0]|0x20 >= 'a' && path[0]|0x20 <= 'z')
}

func isWild(segment string) bool { return strings.ContainsAny(segment, "*?") }

// Covers reports whether the pattern covers a file, an absolute path with slashes, or a name. With fold, upper and lower case are
// the same.
func (p Pattern) Covers(file string, fold bool) bool {
	if p.IsName() || isName(file) {
		return string(p) == file
	}
	c := compared(string(p), capabilities.Normal(file), fold)
	c.isFile = true
	return c.from(0, 0)
}

// Overlaps reports whether there is something that two patterns cover.
func (p Pattern) Overlaps(other Pattern, fold bool) bool {
	if p.IsName() || other.IsName() {
		return p == other
	}
	c := compared(string(p), string(other), fold)
	return c.from(0, 0)
}

// comparison is of two paths, by their folders.
type comparison struct {
	a, b   []string
	isFile bool            // b is a file's path, in which no character is a wildcard
	tried  map[[2]int]bool // places from which the rest is known not to fit
}

func compared(a, b string, fold bool) *comparison {
	if fold {
		a, b = strings.ToLower(a), strings.ToLower(b)
	}
	return &comparison{a: strings.Split(a, "/"), b: strings.Split(b, "/")}
}

// from reports whether the rests of both from some places on have something in common. Two rests, one of which is empty, have: what
// is below what a pattern matches is covered.
func (c *comparison) from(i, j int) bool {
	for ; ; i, j = i+1, j+1 {
		switch {
		case i == len(c.a):
			return true
		case j == len(c.b):
			return !c.isFile || !slices.ContainsFunc(c.a[i:], func(s string) bool { return s != "**" })
		case c.a[i] == "**":
			return c.either(i, j, i+1, j, i, j+1)
		case c.b[j] == "**" && !c.isFile:
			return c.either(i, j, i, j+1, i+1, j)
		case !c.fits(c.a[i], c.b[j]):
			return false
		}
	}
}

// either reports whether one of two pairs of rests has something in common. It tries each place once.
func (c *comparison) either(i, j, i1, j1, i2, j2 int) bool {
	if c.tried[[2]int{i, j}] {
		return false
	}
	if c.tried == nil {
		c.tried = map[[2]int]bool{}
	}
	c.tried[[2]int{i, j}] = true
	return c.from(i1, j1) || c.from(i2, j2)
}

// fits reports whether a name fits two parts of patterns.
func (c *comparison) fits(a, b string) bool {
	switch {
	case a == b && (c.isFile || !isWild(a)):
		return true
	case !isWild(a) && (c.isFile || !isWild(b)):
		return false
	}
	x, y := []rune(a), []rune(b)
	star := func(s []rune, k int, file bool) bool { return !file && k < len(s) && s[k] == '*' }
	now := make([]bool, len(y)+1) // whether the rests from x[i] and each y[j] on have something in common
	var next []bool
	for i := len(x); i >= 0; i-- {
		next, now = now, make([]bool, len(y)+1)
		for j := len(y); j >= 0; j-- {
			switch {
			case i == len(x) && j == len(y):
				now[j] = true
			case star(x, i, false):
				now[j] = next[j] || j < len(y) && now[j+1]
			case star(y, j, c.isFile):
				now[j] = now[j+1] || i < len(x) && next[j]
			case i < len(x) && j < len(y):
				same := x[i] == y[j] || x[i] == '?' || !c.isFile && y[j] == '?'
				now[j] = same && next[j+1]
			}
		}
	}
	return now[0]
}
