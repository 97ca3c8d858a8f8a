package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"parley/gateway/sanitize"
)

// YAML returns a JSON document as YAML, with the members in the order that they have there.
func YAML(doc []byte) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	node, err := yamlNode(dec)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return "---\n" + escapeYAML(string(text)), nil
}

// yamlNode reads the next value of a JSON document.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case json.Delim:
		return yamlCollection(dec, v)
	case string:
		return yamlText(v), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// yamlCollection reads the values of an object or a list, to its end. Names of members are values too.
func yamlCollection(dec *json.Decoder, begin json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if begin == '[' {
		n.Kind = yaml.SequenceNode
	}
	for dec.More() {
		part, err := yamlNode(dec)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, part)
	}
	_, err := dec.Token()
	return n, err
}

// otherInYAML matches text that readers of YAML 1.1 or 1.2 take for something else than text. That is booleans, null, dates,
// numbers in any base, also with sixties as 12:30, and keys of merges.
var otherInYAML = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(y|yes|n|no|true|false|on|off|null|~|=|<<|[-+]?\.(inf|nan)|[-+]?\.?[0-9][0-9a-fxot_.:+\-z ]*)?$`)
})

// yamlText returns a node of text. It is in double quotes where characters have to be escaped, and where a block would lose
// white space. So is text that a reader would take for something else. The library cannot read the blocks that it writes for text
// with tabs or leading blanks.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, hidesInYAML) || strings.Contains(s, "\t") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") || otherInYAML().MatchString(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// escapeYAML escapes the characters that hide in a YAML text. They stand in double quotes there, so that the text means
// the same.
func escapeYAML(text string) string {
	if !strings.ContainsFunc(text, hidesInYAML) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidesInYAML(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// hidesInYAML reports whether a character hides in YAML, where line ends and tabs are layout.
func hidesInYAML(r rune) bool { return sanitize.Hides(r) && r != '\n' && r != '\t' }
