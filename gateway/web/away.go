package web

import (
	"net/url"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Absences are the lengths of an absence to choose from.
func (d agentPage) Absences() []choice {
	return []choice{
		{Value: "4h", Label: "in 4 hours"}, {Value: "8h", Label: "in 8 hours"}, {Value: "24h", Label: "in a day", Chosen: true}, {Value: "72h", Label: "in 3 days"},
		{Value: "168h", Label: "in a week"}, {Value: "336h", Label: "in 2 weeks"}, {Value: "720h", Label: "in 30 days"},
	}
}

// IsAbsent reports whether an absence has begun.
func (d agentPage) IsAbsent() bool {
	return d.Absence != nil && !time.Now().Before(d.Absence.From.Std())
}

// absenceNow returns the absence of the reader, or of an agent that it acts as; nil if there is none.
func absenceNow(p *page, as api.Acting) (*view.Away, error) {
	ins, err := api.ListStandIns.Do(p.ctx(), p, api.StandInsRequest{Acting: as})
	return ins.Away, err
}

// absenceOf returns the request for the absence that the page's form names, or for the end of one.
func absenceOf(as api.Acting, sent url.Values) (api.SetAwayRequest, error) {
	r := api.SetAwayRequest{Acting: as}
	if sent.Has("back") {
		return r, nil
	}
	lasts, err := time.ParseDuration(sent.Get("for"))
	if err != nil || lasts <= 0 || lasts > maxLimit {
		return r, parley.Refuse(parley.InvalidArgument, "%.40q is no time after which you are back", sent.Get("for"))
	}
	r.Until, r.To = capabilities.At(time.Now().Add(lasts)), sent.Get("delegate")
	return r, nil
}
