package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/gateway/sanitize"
)

// sayYAML prints a JSON document as YAML, its members in the order that they have there.
func (p *program) sayYAML(doc []byte) error {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	node, err := yamlNode(dec)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = fmt.Fprintf(p.stdout, "---\n%s", escapeYAML(string(text)))
	return err
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

// yamlCollection reads what an object or a list has, to its end. Names of members are values too.
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

// yamlText is text, in double quotes if it has something to be escaped, or white space that a block would lose: the
// library writes blocks that begin with it, or have tabs in it, in a way that it cannot read.
func yamlText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsFunc(s, hidesInYAML) || strings.Contains(s, "\t") || strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// escapeYAML escapes what hides in a YAML text. It stands in double quotes there, and means what it meant.
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

// hidesInYAML reports whether a character hides. Lines and tabs are layout there.
func hidesInYAML(r rune) bool { return sanitize.Hides(r) && r != '\n' && r != '\t' }
