package gateway

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

	"parley"
)

const assetsPath = "/assets/"

// assets are the files that pages refer to. Their address has a hash of them all, so that a browser may keep them
// for ever, and modules import each other by plain relative names.
type assets struct {
	hash  string
	files map[string]asset
}

type asset struct {
	kind   string // media type
	plain  []byte
	packed []byte // by gzip
}

func newAssets(from fs.FS, folder string) (*assets, error) {
	a := &assets{files: map[string]asset{}}
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
		packed, err := pack(plain)
		if err != nil {
			return nil, err
		}
		_, _ = sum.Write([]byte(entry.Name() + "\x00" + strconv.Itoa(len(plain)) + "\x00")) // a hash takes everything
		_, _ = sum.Write(plain)
		a.files[entry.Name()] = asset{kind: mediaType(entry.Name()), plain: plain, packed: packed}
	}
	a.hash = hex.EncodeToString(sum.Sum(nil))[:16]
	return a, nil
}

// mediaType does not ask the machine, which may know otherwise.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".ts":
		return "application/typescript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func pack(plain []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close() // only then is everything in buf
	return buf.Bytes(), err
}

// url is the address of a file.
func (a *assets) url(name string) string { return assetsPath + a.hash + "/" + name }

// asset serves a file.
func (v *viewing) asset() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	a := v.s.page.assets
	hash, name, _ := strings.Cut(strings.TrimPrefix(v.r.URL.Path, assetsPath), "/")
	file, known := a.files[name]
	if !known || hash != a.hash {
		return parley.Refuse(parley.NoSuchMessage, "there is nothing at %.80q", v.r.URL.Path)
	}
	v.w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	file.serve(v.w, v.r)
	return nil
}

func (f asset) serve(w http.ResponseWriter, r *http.Request) {
	body := f.plain
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		body = f.packed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // who has gone away does not miss it
}
