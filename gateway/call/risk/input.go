package risk

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Call collects the findings of a call that is no command line.
type Call struct {
	list
	place
	prod bool
}

// OfCall begins the findings of a call that is made in a folder, an absolute path; "" for one that is not known.
func OfCall(folder string) *Call {
	return &Call{place: place{folder, folder}, prod: hasProduction(folder)}
}

// Findings returns what was found.
func (c *Call) Findings() Findings { return c.sorted() }

// Add adds findings of a command line that the call has.
func (c *Call) Add(f Findings) {
	for _, one := range f {
		c.add(one)
	}
}

// Unread adds that a call cannot be read.
func (c *Call) Unread(why string) {
	c.add(Finding{Level: High, Mark: "Can't be read", Text: why})
}

// Writes adds that a file is written, and Reads that one is read.
func (c *Call) Writes(name string) { c.names(c.place, name, writes, 0, 0) }

// Reads adds that a file is read.
func (c *Call) Reads(name string) { c.names(c.place, name, reads, 0, 0) }

// Changes adds that something is changed, as a sentence says.
func (c *Call) Changes(sentence string) {
	c.add(Finding{Level: Notable, Mark: "Changes data", Text: sentence})
}

// Request adds what a request by HTTP does, as its method tells.
func (c *Call) Request(method, address string) {
	c.Address(address)
	prod := hasProduction(address)
	switch {
	case method == "GET" || method == "HEAD":
	case method == "DELETE" && prod:
		c.add(Finding{Level: High, Mark: "Deletes in prod", Text: "Deletes something of what is named production: " + short(address) + "."})
	case method == "DELETE":
		c.add(Finding{Level: Notable, Mark: "Deletes data", Text: "Deletes something by a request: " + short(address) + "."})
	case prod:
		c.add(Finding{Level: High, Mark: "Changes prod", Text: "Changes something of what is named production: " + short(address) + "."})
	default:
		c.Changes("Sends a " + method + " request, which may change something: " + short(address) + ".")
	}
}

// Address adds that an address is used.
func (c *Call) Address(address string) {
	host := address
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		host = u.Host
	}
	c.add(Finding{Text: "Uses the network: " + short(host) + "."})
	c.host(address)
}

// IsAddress reports whether a text is an address of the network.
func IsAddress(text string) bool { return isAddress(text) }

// Tool adds what the name of a tool tells, with all of its input as text. Server is that of an MCP tool; "" for any other.
func (c *Call) Tool(server, tool, input string) {
	prod := c.prod || hasProduction(server) || hasProduction(tool) || hasProduction(input)
	said := tool
	if server != "" {
		said = server + " · " + tool
	}
	how := verbOf(tool)
	if how == readsOnly && (strings.Contains(strings.ToLower(input), `"sql"`) || strings.Contains(strings.ToLower(input), `"query"`) || strings.Contains(strings.ToLower(input), `"statement"`)) && changesStatement(input) {
		how = changes
	}
	switch {
	case how == readsOnly:
	case how == deletesThings && prod:
		c.add(Finding{Level: High, Mark: "Deletes in prod", Text: "Deletes something of what is named production: " + short(said) + "."})
	case how == deletesThings:
		c.add(Finding{Level: Notable, Mark: "Deletes data", Text: "Deletes something by " + short(said) + "."})
	case how == deploys && prod, how == changes && prod && changesStatement(input):
		c.add(Finding{Level: High, Mark: "Changes prod", Text: "Changes something of what is named production: " + short(said) + "."})
	case how == runsCode:
		c.add(Finding{Level: High, Mark: "Runs code", Text: "Runs commands or code by " + short(said) + "."})
	case how == notKnown:
		c.add(Finding{Level: Notable, Mark: "Unknown effect", Text: "It is not known what " + short(said) + " does."})
	default:
		c.add(Finding{Level: Notable, Mark: "Changes data", Text: "Changes something by " + short(said) + "."})
	}
}

// effect is what a tool does, as its name tells.
type effect uint8

const (
	notKnown effect = iota
	readsOnly
	changes
	deletesThings
	deploys
	runsCode
)

// verbOf returns what a tool does by the words of its name: the worst of them.
func verbOf(tool string) (e effect) {
	var b strings.Builder
	for i, r := range tool {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	for _, part := range parted(b.String()) {
		is := notKnown
		switch part {
		case "get", "list", "search", "read", "find", "fetch", "show", "describe", "count", "query", "view", "lookup", "status", "check", "info", "inspect", "browse", "glob", "grep", "ls", "think", "todo", "task", "plan", "wait":
			is = readsOnly
		case "create", "update", "write", "set", "add", "put", "post", "send", "edit", "insert", "patch", "change", "move", "rename", "upload", "reply", "comment", "assign", "close", "open", "merge", "commit", "push", "publish", "copy", "save", "store", "upsert", "invite", "share", "approve", "cancel", "pay", "transfer", "fill", "click", "type", "submit", "navigate":
			is = changes
		case "delete", "remove", "drop", "destroy", "truncate", "purge", "wipe", "clear", "terminate", "archive":
			is = deletesThings
		case "deploy", "apply", "migrate", "rollback", "release", "restart", "promote", "scale":
			is = deploys
		case "exec", "execute", "eval", "run", "shell", "bash", "command", "script", "terminal", "evaluate", "spawn":
			is = runsCode
		}
		e = max(e, is)
	}
	return e
}

// changesStatement reports whether an input has a statement in SQL that changes data.
func changesStatement(input string) bool {
	for _, field := range strings.FieldsFunc(strings.ToLower(input), func(r rune) bool { return !('a' <= r && r <= 'z' || r == '_') }) {
		switch field {
		case "insert", "update", "delete", "drop", "truncate", "alter", "create", "grant", "revoke", "merge", "call":
			return true
		}
	}
	return false
}

// host tells the name of a host in ASCII, as the network takes it, if it has other letters: a name that is wholly of another
// script can look like one that is known.
func (l *list) host(word string) {
	if _, rest, ok := strings.Cut(word, "://"); ok {
		word = rest
	}
	word, _, _ = strings.Cut(word, "/")
	name := word[strings.LastIndexByte(word, '@')+1:]
	name, _, _ = strings.Cut(name, ":")
	if strings.IndexFunc(name, func(c rune) bool { return c > unicode.MaxASCII }) < 0 || !strings.ContainsAny(name, ".。．｡") {
		return
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil {
		ascii = "no host has it"
	}
	l.add(Finding{Level: Notable, Mark: "Unusual address", Text: "A host's name has letters that are not ASCII: " + ascii + "."})
}
