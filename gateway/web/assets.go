package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"parley"
)

// AssetsPath, with a hash and a name behind it, is the address of a file.
const AssetsPath = "/assets/"

// Assets holds the files that pages refer to. Their addresses contain a hash of all files, so that a browser may cache
// them for ever. Modules import each other by relative names.
type Assets struct {
	Hash  string
	Files map[string]Asset
}

// Asset is one file.
type Asset struct {
	kind   string // media type
	plain  []byte
	packed func() []byte // returns it compressed by gzip; the first call compresses
}

func newAssets(from fs.FS, folder string) (*Assets, error) {
	a := &Assets{Files: map[string]Asset{}}
	names, err := fs.ReadDir(from, folder)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	for _, entry := range names {
		plain, err := fs.ReadFile(from, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		_, _ = sum.Write([]byte(entry.Name() + "\x00" + strconv.Itoa(len(plain)) + "\x00")) // never fails
		_, _ = sum.Write(plain)
		if ext := path.Ext(entry.Name()); ext == ".js" || ext == ".css" {
			plain = uncommented(plain)
		}
		a.Files[entry.Name()] = Asset{kind: mediaType(entry.Name()), plain: plain, packed: sync.OnceValue(func() []byte { return compress(plain) })}
	}
	a.Hash = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// uncommented returns code without its comments, which are a sixth of what a browser would fetch: those that have lines of their own, and those
// that end a line of script. The lines stay, so that errors name those of the source.
func uncommented(code []byte) []byte {
	var kept bytes.Buffer
	inside := false
	for line := range bytes.Lines(code) {
		text := bytes.TrimSpace(line)
		begins := !inside && bytes.HasPrefix(text, []byte("/*"))
		switch {
		case !inside && !begins && !bytes.HasPrefix(text, []byte("//")):
			kept.Write(withoutRemark(line))
			continue
		case begins, inside:
			_, rest, ends := bytes.Cut(text, []byte("*/"))
			if inside = !ends; len(rest) > 0 { // there is code behind it
				kept.Write(rest)
			}
		}
		kept.WriteByte('\n')
	}
	return kept.Bytes()
}

// withoutRemark returns a line of script without the comment that ends it. A comment that may be a part of a text stays: behind an open quote, or
// behind anything but the end of a statement, of a member or of a line that opens a block.
func withoutRemark(line []byte) []byte {
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte(" // "))
		if i < 0 {
			return line
		}
		before := bytes.TrimRight(line[:from+i], " ")
		if len(before) > 0 && bytes.IndexByte([]byte(";,{}(["), before[len(before)-1]) >= 0 && !hasOpenQuote(before) {
			return append(bytes.Clone(before), '\n')
		}
		from += i + len(" // ")
	}
}

// hasOpenQuote reports whether a line ends within quotes, as far as can be told without reading the language.
func hasOpenQuote(line []byte) bool {
	for _, quote := range []string{"'", `"`, "`"} {
		if bytes.Count(line, []byte(quote))%2 == 1 {
			return true
		}
	}
	return false
}

// mediaType returns the media type of a file. It does not depend on the tables of the system for the usual ones.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".ts":
		return "application/typescript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".png":
		return "image/png"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// compress returns a file compressed by gzip.
func compress(plain []byte) []byte {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is one of gzip's
	}
	_, _ = w.Write(plain) // a buffer takes everything
	_ = w.Close()
	return buf.Bytes()
}

// URL returns the address of a file.
func (a *Assets) URL(name string) string { return AssetsPath + a.Hash + "/" + name }

// Serve answers a request with the file.
func (f Asset) Serve(w http.ResponseWriter, r *http.Request) {
	body := f.plain
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.packed()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the error is that of a client that has gone away
}

// The addresses of the elements for pages of other servers. They stay when the files change.
const (
	ElementsPath     = "/elements.js"
	ElementTypesPath = "/elements.d.ts"
)

// elements redirects to the module, or to its types, of this build. The modules that it imports are beside it there.
func (p *page) elements() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	to := p.site.Assets.URL(p.r.URL.Path[1:])
	p.w.Header().Set("Location", to[1:]) // relative: a proxy may serve the node under a path
	p.w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// asset serves a file.
func (p *page) asset() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	a := p.site.Assets
	hash, name, _ := strings.Cut(strings.TrimPrefix(p.r.URL.Path, AssetsPath), "/")
	file, known := a.Files[name]
	if !known || hash != a.Hash {
		return parley.Refuse(parley.NoSuchMessage, "there is nothing at %.80q", p.r.URL.Path)
	}
	if name == pushWorker {
		p.allowPushScope()
	}
	p.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	file.Serve(p.w, p.r)
	return nil
}
