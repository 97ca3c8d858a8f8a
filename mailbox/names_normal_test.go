package mailbox_test

import (
	"testing"

	"parley"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestNamesInOtherNormalForm binds, finds and frees a name by letters that are written as others, and look the same.
func TestNamesInOtherNormalForm(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	v := mailboxtest.New(t)
	v.Add("host")
	for _, names := range [][2]string{{composed, apart}, {apart, composed}} {
		bound := v.Must("host", mailbox.BindName{Name: names[0], Value: "5"})
		if e := bound[0].(*events.NameBound); e.Name != composed {
			t.Errorf("%q is bound", e.Name)
		}
		for _, c := range []mailbox.Command{
			mailbox.BindName{Name: names[1], Value: "6"}, mailbox.CreateAgent{Kind: events.Guest, Name: names[1], Agent: v.NewID()}, mailbox.CopyName{From: names[1], To: names[1]},
		} {
			if _, err := v.Decide("host", c); parley.CodeOf(err) != parley.NameTaken {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if got, err := v.States["host"].Namespace().Lookup(names[1]); err != nil || got.Text() != "5" {
			t.Errorf("%q is %v, %v", names[1], got, err)
		}
		v.Must("host", mailbox.UnbindName{Name: names[1]})
		if _, err := v.States["host"].Namespace().Lookup(names[0]); parley.CodeOf(err) != parley.UnknownName {
			t.Errorf("%q is still there: %v", names[0], err)
		}
	}
}

// TestNamesThatLookAlike binds names that look like others and are not. Both ways around, the second is refused.
func TestNamesThatLookAlike(t *testing.T) {
	const latin, cyrillic = "ace", "\u0430\u0441\u0435"
	for _, names := range [][2]string{{latin, cyrillic}, {cyrillic, latin}, {latin, "\uff41ce"}} {
		v := mailboxtest.New(t)
		v.Add("host")
		v.Must("host", mailbox.CreateAgent{Kind: events.Guest, Name: names[0], Agent: v.NewID()})
		v.Must("host", mailbox.BindName{Name: "other", Value: "5"})
		for _, c := range []mailbox.Command{
			mailbox.BindName{Name: names[1], Value: "6"}, mailbox.CreateAgent{Kind: events.Guest, Name: names[1], Agent: v.NewID()}, mailbox.CopyName{From: names[0], To: names[1]},
			mailbox.MoveName{From: "other", To: names[1]},
		} {
			if _, err := v.Decide("host", c); parley.CodeOf(err) != parley.NameTaken {
				t.Errorf("%+v: %v", c, err)
			}
		}
		v.Must("host", mailbox.MoveName{From: names[0], To: "free"})
		v.Must("host", mailbox.BindName{Name: names[1], Value: "6"})
	}
	v := mailboxtest.New(t)
	v.Add("host")
	for name, code := range map[string]parley.Code{
		"p\u0430ypal": parley.InvalidName, "\u041d\u041e\u0405\u0422": parley.NameTaken, "\u0442\u0435\u0441\u0442-api": "", "\u65e5\u672c": "",
	} {
		if _, err := v.Decide("host", mailbox.CreateAgent{Kind: events.Guest, Name: name, Agent: v.NewID()}); parley.CodeOf(err) != code {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestKeysInOtherNormalForm repeats what was sent under a key by letters that are written as others, and look the same.
func TestKeysInOtherNormalForm(t *testing.T) {
	const composed, apart = "caf\u00e9", "cafe\u0301"
	for _, keys := range [][2]string{{composed, apart}, {apart, composed}} {
		v := mailboxtest.New(t)
		v.Add("host")
		v.Add("fae")
		for name, command := range map[string]func(key string) mailbox.Command{
			"form": func(key string) mailbox.Command {
				return mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: "HOST", Description: "d", Key: key}}
			},
			"message": func(key string) mailbox.Command {
				return mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "t", Key: key}}
			},
			"schedule": func(key string) mailbox.Command {
				return mailbox.ScheduleMessage{To: "HOST", Post: parley.Post{Text: "t", Key: key}, At: v.Now + 100_000}
			},
		} {
			v.Must("fae", command(name+keys[0]))
			if again, err := v.Decide("fae", command(name+keys[1])); len(again) > 0 || err != nil {
				t.Errorf("%s: again by %+q it is %v, %v", name, keys[1], again, err)
			}
		}
	}
}
