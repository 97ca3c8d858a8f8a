package rule

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
)

// maxNesting bounds the depth of the input of a call.
const maxNesting = 64

// CheckInput refuses an input with INVALID_FORM: one that is not a JSON document, is too deep, or has a key twice in
// one object. With a key twice, the call that is run could differ from the one that is shown.
func CheckInput(input string) error {
	if !json.Valid([]byte(input)) {
		return parley.Refuse(parley.InvalidForm, "the input of a call is a JSON document")
	}
	if capabilities.Nesting([]byte(input)) > maxNesting {
		return parley.Refuse(parley.InvalidForm, "the input of a call nests deeper than %d", maxNesting)
	}
	dec := json.NewDecoder(strings.NewReader(input))
	dec.UseNumber()
	return checkKeys(dec)
}

// object is the state of an open object or list: its keys so far, and whether a key comes next. A list has no keys.
type object struct {
	keys  map[string]bool
	value bool
}

// checkKeys refuses a document in which an object has a key twice.
func checkKeys(dec *json.Decoder) error {
	var open []object
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return parley.Refuse(parley.InvalidForm, "the input of a call is a JSON document")
		}
		top := len(open) - 1
		if top >= 0 && open[top].keys != nil {
			if key, ok := token.(string); ok && !open[top].value {
				if open[top].keys[key] {
					return parley.Refuse(parley.InvalidForm, "the input names the key %.100q twice", key).
						WithHint("name each key once: programs differ in which of two they take")
				}
				open[top].keys[key], open[top].value = true, true
				continue
			}
			open[top].value = false
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, object{})
		case json.Delim('}'), json.Delim(']'):
			open = open[:top]
		}
	}
}

// maxFolder bounds the path of a folder, in bytes.
const maxFolder = 1 << 10

// CheckFolder refuses with INVALID_ARGUMENT a folder that is not an absolute, clean path. "" means none.
func CheckFolder(folder string) error {
	switch {
	case folder == "":
		return nil
	case len(folder) > maxFolder:
		return parley.Refuse(parley.TooLarge, "a folder of %d bytes is over the limit of %d", len(folder), maxFolder)
	case !utf8.ValidString(folder) || strings.ContainsRune(folder, 0):
		return parley.Refuse(parley.InvalidArgument, "a folder is valid UTF-8 without NUL")
	case !path.IsAbs(folder) || path.Clean(folder) != folder:
		return parley.Refuse(parley.InvalidArgument, "a folder is an absolute path without . and .. in it, and %.100q is not", folder)
	}
	return nil
}

// maxEssence bounds the essence of an input that a rule stores as it is, in bytes. A rule for a longer one has its
// digest. The essence of an input of half the size is never longer: only U+2028 and U+2029 take twice the room in it.
const maxEssence = 32 << 10

// digestMark begins the digest of a long essence. No JSON document begins with it.
const digestMark = "sha256:"

// essence returns what identifies the call for rules: the identifying part of its input, or the digest of a long one.
func essence(c *parley.Permission) string {
	part := identifying(c)
	if len(part) <= maxEssence {
		return part
	}
	sum := sha256.Sum256([]byte(part))
	return digestMark + hex.EncodeToString(sum[:])
}

// identifying returns the part of an input that identifies the call: all of it, but for the description of a command
// line.
func identifying(c *parley.Permission) string {
	fields, ok := fieldsOf(c)
	if !ok {
		return c.Input
	}
	for _, name := range []string{"description", "title"} {
		if _, isText := textOf(fields[name]); isText {
			delete(fields, name)
		}
	}
	line, _ := textOf(fields["command"])
	fields["command"] = plainJSON(line)
	return string(plainJSON(fields))
}

// fieldsOf returns the fields of a call that runs a command line. It refuses text that programs may decode differently.
func fieldsOf(c *parley.Permission) (map[string]json.RawMessage, bool) {
	if !runsLines(c.Tool) {
		return nil, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(c.Input), &fields) != nil {
		return nil, false
	}
	line, ok := textOf(fields["command"])
	return fields, ok && !strings.ContainsRune(line, unicode.ReplacementChar)
}

// runsLines reports whether coding agents run command lines with a tool.
func runsLines(tool string) bool {
	switch tool {
	case "Bash", "bash", "shell", "execute", "exec_command", "local_shell", "run_shell_command":
		return true
	}
	return false
}

// textOf returns the text of a JSON string.
func textOf(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var text string
	return text, json.Unmarshal(raw, &text) == nil
}

// plainJSON encodes a value without unnecessary escapes.
func plainJSON(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
