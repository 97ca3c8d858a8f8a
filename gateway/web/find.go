package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/internal/fair"
)

// FindPath is the address at which places, agents, open questions and mail are found by a few words. The palette has what it shows.
const FindPath = "/find"

// Bounds of what is found.
const (
	maxOfGroup = 6
	maxFinding = 100 * time.Millisecond // for which the index reads what it lacks: the next letter asks again
)

// foundPage is what was found.
type foundPage struct {
	Text   string
	Groups []foundGroup
}

// foundGroup is a group of what was found.
type foundGroup struct {
	Title string
	Links []foundLink
}

// foundLink leads to something that was found. The words that were sought are changed pieces of Text.
type foundLink struct {
	Icon    string
	Text    []piece
	Note    string
	Address string
}

// place is a page that has a name.
type place struct{ words, path, icon string }

// places are the pages that are found by their names, but for those of who owns devices.
var places = []place{
	{"Needs you", string(needsReader), "inbox"}, {"Mail", string(allMail), "mail"}, {"Agents", "/agents", "agents"}, {"History", string(pastMail), "history"}, {"Rules and access", AccessPath, "shield"},
	{"Topics", TopicsPath, "hash"}, {"New message", ComposePath, "edit"}, {"Snoozed", string(snoozedMail), "moon"}, {"Done", string(doneMail), "check"}, {"Settings", SettingsPath, "gear"},
}

// ownedPlaces are those that only the owner of devices may see.
var ownedPlaces = []place{{"Devices", DevicesPath, "phone"}, {"Passkeys", PasskeysPath, "key"}}

// aboutAgent are what a person does about an agent, found by its words with those of the agent.
var aboutAgent = []struct{ words, icon, tab string }{{"See rules of", "shield", rulesTab}, {"See access of", "key", accessTab}}

// finding looks for words.
type finding struct {
	*page
	text  string
	words []string // in lower case
}

// find shows what the words of a search are in: what the reader can do, where it can go, and what was said and decided.
func find(p *page) error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	f := finding{page: p, text: strings.TrimSpace(p.r.URL.Query().Get("q"))}
	f.words = strings.FieldsFunc(strings.ToLower(f.text), func(c rune) bool { return unicode.IsSpace(c) || c == '"' || c == '*' }) // as a search is written
	d := foundPage{Text: f.text}
	if len(f.words) > 0 {
		waiting, err := questionsFor(p)
		if err != nil {
			return err
		}
		do, agents, err := f.agents()
		if err != nil {
			return err
		}
		found, err := f.mail(waiting)
		if err != nil {
			return err
		}
		for _, g := range []foundGroup{{"Do", do}, {"Go to", append(agents, f.places()...)}, {"Needs you", f.questions(waiting)}, {"Found in mail and decisions", found}} {
			if len(g.Links) > 0 {
				d.Groups = append(d.Groups, g)
			}
		}
	}
	return p.show(http.StatusOK, "find.html", layout{Title: "Search", Main: d})
}

// fits reports whether all words are in some texts.
func (f finding) fits(texts ...string) bool {
	text := strings.ToLower(strings.Join(texts, "\n"))
	return !slices.ContainsFunc(f.words, func(w string) bool { return !strings.Contains(text, w) })
}

// link returns a link with a text, of which the words are marked.
func (f finding) link(icon, text, note, address string) foundLink {
	return foundLink{Icon: icon, Text: row{Sought: f.text}.Hits(text), Note: note, Address: f.base + address}
}

// places returns the pages whose names have the words.
func (f finding) places() (links []foundLink) {
	all := places
	if f.ownsDevices() {
		all = slices.Concat(all, ownedPlaces)
	}
	for _, at := range all {
		if f.fits(at.words) {
			links = append(links, f.link(at.icon, at.words, "", at.path))
		}
	}
	return links
}

// agents returns the agents that the words name, and what the reader can do about those that they name with a verb.
func (f finding) agents() (do, agents []foundLink, err error) {
	if !f.principal.IsHost() {
		return nil, nil, nil // another agent may not see the pages of those it holds
	}
	all, err := f.statuses()
	if err != nil {
		return nil, nil, err
	}
	names, askers := people.NamesOf(f.principal.ID(), all), askersOf(f.page)
	for i := range all {
		s := &all[i]
		if s.Name == "" || s.ID == f.principal.ID() || s.Topic {
			continue
		}
		shown := partyOf(s.ID, names.Of(s.ID, s.Name)).Name
		if f.fits(shown, s.Name, s.Title) {
			if len(agents) < maxOfGroup {
				agents = append(agents, f.link("agents", shown, agentState{askers.stateOf(*s)}.Words(), AgentPath(s.Name)))
			}
			continue
		}
		if len(do) >= maxOfGroup {
			continue
		}
		for _, verb := range aboutAgent {
			if f.fits(verb.words, shown, s.Name) {
				do = append(do, f.link(verb.icon, verb.words+" "+shown, "", AgentPath(s.Name)+"?tab="+verb.tab))
			}
		}
		if f.fits("See decisions about", shown, s.Name) {
			do = append(do, f.link("history", "See decisions about "+shown, "", "/history?agent="+s.ID.String()))
		}
		if f.fits("Message", shown, s.Name) {
			do = append(do, f.link("edit", "Message "+shown, "", ComposePath+"?to="+url.QueryEscape(s.Name)))
		}
	}
	return do, agents, nil
}

// questions returns the rows of what waits that the words are in.
func (f finding) questions(waiting []question) (links []foundLink) {
	for _, r := range ranked(f.page, waiting, strings.TrimPrefix(string(needsReader), "/")) {
		if len(links) == maxOfGroup {
			break
		}
		if f.fits(r.Line, r.Other().Name, r.Folder, r.Title, r.Description) {
			links = append(links, foundLink{Icon: r.Icon(), Text: row{Sought: f.text}.Hits(r.Line), Note: r.Other().Name, Address: r.Address()})
		}
	}
	return links
}

// mail returns the newest of the reader's mail that the words are in, but for what waits, and the addresses of all. Without an index there are the
// addresses.
func (f finding) mail(waiting []question) (links []foundLink, err error) {
	found, err := api.Search.Do(fair.Until(f.ctx(), time.Now().Add(maxFinding)), f, api.SearchRequest{Search: view.Search{Text: beginnings(f.text)}, Limit: 2 * maxOfGroup})
	if err != nil && f.ctx().Err() != nil {
		return nil, err
	}
	of := local{agent: f.agent}
	for _, m := range found.Messages {
		isOpen := slices.ContainsFunc(waiting, func(q question) bool { return q.MessageID == m.MessageID })
		if isOpen || len(links) == maxOfGroup {
			continue
		}
		r := rowOfAll(f.page, []question{{m, of}}, []int{0}, "")
		text, icon := r.Line, r.Icon()
		if reason := r.Decision.Reason; reason != "" && !f.fits(text) && f.fits(reason) {
			text, icon = "“"+lineOf(reason)+"”", "history"
		}
		links = append(links, foundLink{Icon: icon, Text: row{Sought: f.text}.Hits(text), Note: r.Other().Name, Address: r.Address()})
	}
	all := func(icon, what string, in listView) foundLink {
		return foundLink{Icon: icon, Text: []piece{{Text: "All " + what + " with “" + f.text + "”"}}, Address: f.base + listQuery{View: in, Text: f.text}.Address()}
	}
	return append(links, all("mail", "mail", allMail), all("history", "decisions", pastMail)), nil
}
