package form

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"parley/capabilities"
	"parley/events"
)

// The answer to a field of type file is a record with the members of events.File. Its text is that record as JSON.

// Bounds of what is said of a file, in bytes.
const (
	maxFileName = 255
	maxFileType = 100
)

// IsFileName reports whether a text may be the name of a file: one line, and no path.
func IsFileName(name string) bool {
	return name != "" && len(name) <= maxFileName && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == '/' || r == '\\' || r == '\u2028' || r == '\u2029'
	})
}

// IsMediaType reports whether a text may be the media type of a file. "" is none.
func IsMediaType(t string) bool {
	return t == "" || len(t) <= maxFileType && strings.Count(t, "/") == 1 && !strings.HasPrefix(t, "/") && !strings.HasSuffix(t, "/") &&
		!strings.ContainsFunc(t, func(r rune) bool { return r < ' ' || r > '~' })
}

// IsDigest reports whether a text is the SHA-256 of a file in hexadecimal digits.
func IsDigest(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// FileValue returns the answer to a field of type file.
func FileValue(f events.File) capabilities.Value {
	r := map[string]capabilities.Value{"digest": capabilities.String(f.Digest), "name": capabilities.String(f.Name), "size": capabilities.Int(f.Size)}
	if f.Type != "" {
		r["type"] = capabilities.String(f.Type)
	}
	return capabilities.Record(r)
}

// FileText returns the text of an answer to a field of type file.
func FileText(f events.File) string {
	b, _ := json.Marshal(f) // it has texts and a number
	return string(b)
}

// FileIn returns the file of an answer, and whether it is one.
func FileIn(v capabilities.Value) (f events.File, ok bool) {
	r, ok := v.AsRecord()
	if !ok || len(r) > 4 {
		return f, false
	}
	members := 0
	for key, to := range map[string]*string{"digest": &f.Digest, "name": &f.Name, "type": &f.Type} {
		if v, there := r[key]; there {
			if *to, ok = v.AsString(); !ok {
				return f, false
			}
			members++
		}
	}
	if v, there := r["size"]; there {
		if f.Size, ok = v.AsInt(); !ok {
			return f, false
		}
		members++
	}
	return f, members == len(r) && IsDigest(f.Digest) && f.Size >= 0
}

// FilesIn returns the files of an answer's values: those of fields of type file.
func FilesIn(fields []events.Field, values capabilities.Value) (files []events.File) {
	r, _ := values.AsRecord()
	for i := range fields {
		if ControlOf(&fields[i]) != File {
			continue
		}
		if f, ok := FileIn(r[fields[i].Name]); ok {
			files = append(files, f)
		}
	}
	return files
}

// wrongFile returns why a value is not a file, or "". Whether the answerer has stored it is the mailbox's to say.
func wrongFile(v capabilities.Value) string {
	f, ok := FileIn(v)
	if !ok {
		return "want a file: its digest, name and size, once it is stored"
	}
	switch {
	case !IsFileName(f.Name):
		return `the name of the file is none: want one line of at most 255 bytes, without / and \`
	case !IsMediaType(f.Type):
		return "the media type of the file is none: want one such as text/plain"
	}
	return ""
}

// readFile reads the text of a file.
func readFile(text string) (capabilities.Value, string) {
	var f events.File
	if len(text) > 4096 || json.Unmarshal([]byte(text), &f) != nil || !IsDigest(f.Digest) {
		return capabilities.Value{}, "want a file: on the command line " + `@PATH` + ", elsewhere what store_file returns, with a name"
	}
	return FileValue(f), ""
}
