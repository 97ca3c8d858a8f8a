package api

import "net/url"

// Off is the address of a node that listens on its socket alone.
const Off = "off"

// FormsPath, with a number or an ID behind it, is the address of the page of one message.
const FormsPath = "/forms/"

// FormLink returns the address of the page on which the host settles a form. The form is the host's own, or that of the
// agent that the host holds under a name.
func FormLink(base, as, form string) string {
	link := base + FormsPath + url.PathEscape(form)
	if as != "" {
		link += "?" + url.Values{"as": {as}}.Encode()
	}
	return link
}
