package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestMandateIsGivenWithACall allows a call with a mandate, at two widths. What it gives is said before, and it covers that and no more.
func TestMandateIsGivenWithACall(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			asked := h.approveIn("/srv/shop", "pay", `{"amount":12.5,"to":"bob"}`)
			b := h.openBrowser()
			b.do(chromedp.EmulateViewport(width, 800))
			b.open("/forms/" + asked.Form.String())
			b.live()
			b.until(`document.querySelector("#alone > .message[data-keys]")`)
			b.press("m")
			b.until(`document.querySelector("#alone .leave[open]")?.contains(document.activeElement)`)
			b.run(`document.querySelector("#alone > .message").focus()`)
			b.press("a") // nothing is allowed while that is open
			b.until(`document.querySelector("[data-leaves]").disabled`)
			b.click("#alone [name=leave-tool]")
			b.fill("#alone [name=leave-calls]", "3")
			b.fill("#alone [name='leave-sum-amount']", "x")
			b.reads("#alone .leave .says", `"x" is no plain number for the sum of "amount"`)
			b.until(`document.querySelector("[data-leaves]").disabled`)
			b.fill("#alone [name='leave-sum-amount']", "40")
			b.fill("#alone [name=leave-commands]", "make test")
			b.choose("#alone [name=leave-until]", "8h")
			b.reads("#alone .leave .says", "fae may do without asking: pay: any input, in /srv/shop; make test, without options, in /srv/shop.")
			b.reads("#alone .leave .says", "3 calls at most, amount of pay adding up to 40 at most, until ")
			b.until(`!document.querySelector("[data-leaves]").disabled`)
			if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
				t.Error("it is wider than its window")
			}
			b.shotIfWanted(fmt.Sprintf("leave-said-%d", width))
			b.click("#alone [data-leaves]")
			b.reads(".state", "✓ Allowed once · by you")
			b.shotIfWanted(fmt.Sprintf("leave-given-%d", width))
			all, err := h.fae.Rules().Mandates(t.Context(), false)
			if err != nil || len(all) != 1 || all[0].Calls != 3 || len(all[0].Sums) != 1 || all[0].Sums[0].Most != "40" || all[0].Until == 0 || len(all[0].Words) != 2 {
				t.Fatalf("%+v %v", all, err)
			}
			if p := h.approveIn("/srv/shop", "pay", `{"amount":20}`); !p.Allowed || p.Mandate.IsZero() {
				t.Errorf("a call within it: %+v", p)
			}
			if p := h.approveIn("/srv/shop", "pay", `{"amount":30}`); p.Decided {
				t.Errorf("a call over its sum: %+v", p)
			}
			if p := h.shell("make test"); !p.Allowed {
				t.Errorf("a command within it: %+v", p)
			}
			b.checkNoFaults()
		})
	}
}

// TestLettersInAnOpenPartAreNoKeys types at a checkbox of a mandate that is being given, where a person takes what is typed for the part that is
// open. None of it snoozes, closes or decides.
func TestLettersInAnOpenPartAreNoKeys(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	for _, command := range []string{"make", "git fetch"} {
		h.approveIn("/srv/shop", "Bash", fmt.Sprintf(`{"command":%q}`, command))
	}
	b := h.openBrowser()
	b.open("/questions")
	b.live()
	b.until(`document.querySelector("#alone > .message[data-keys]")`)
	b.press("m")
	b.until(`document.querySelector("#alone .leave[open]")`)
	first := b.text(`document.querySelector("#alone > .message").id`)
	b.run(`document.querySelector("#alone [name=leave-offer]").focus()`)
	b.press("sadeuxrm ")
	b.until(`document.querySelector("#alone [name=leave-offer]").checked`) // the space was for it
	if got := b.text(`document.querySelector("#alone > .message:has(.leave[open] [name=leave-offer]:focus)")?.id`); got != first {
		t.Errorf("%q is open, want %q with the part of the mandate", got, first)
	}
	if n := h.waitingCalls(); n != 2 {
		t.Errorf("%d calls wait, want 2", n)
	}
	if picked := b.text(`document.querySelectorAll("#stream .pick:checked").length`); picked != "0" {
		t.Errorf("%s rows are selected", picked)
	}
	b.press(kb.Escape)
	b.until(`!document.querySelector("#alone .leave[open]") && document.activeElement.matches("#alone > .message")`)
	b.checkNoFaults()
}

// TestMandateIsGivenWithoutScript shows what a mandate gives before it is given, and gives nothing else.
func TestMandateIsGivenWithoutScript(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	asked := h.shell("make test")
	at := "/forms/" + asked.Form.String()
	if _, _, body := h.get("/forms/"+h.shell("sudo rm -rf /").Form.String(), "text/html"); strings.Contains(body, "leave-offer") {
		t.Error("a mandate is offered with a call of high risk")
	}
	chosen := url.Values{"leave-offer": {"call"}, "leave-calls": {"2"}}
	with := func(more url.Values) url.Values {
		all := url.Values{}
		for _, v := range []url.Values{chosen, more} {
			for key, texts := range v {
				all[key] = texts
			}
		}
		return all
	}
	status, _, body := h.postForm(at, with(url.Values{"do": {"leave"}}))
	if status != http.StatusOK || !strings.Contains(body, "fae may do without asking: Bash: exactly: make test, in /srv/shop. That is for 2 calls at most.") || !strings.Contains(body, `name="terms"`) {
		t.Fatalf("%d\n%s", status, body)
	}
	for name, sent := range map[string]url.Values{
		"nothing shown": with(nil), "another shown": with(url.Values{"terms": {`{"rules":[{"tool":"pay"}],"calls":2}`}}), "none chosen": {"terms": {`{"rules":[{"offer":"call"}]}`}},
	} {
		if status, _, _ := h.postForm(at+"?do=allow-leave", sent); status == http.StatusSeeOther {
			t.Errorf("%s: it is given", name)
		}
	}
	if status, _, body := h.postForm(at+"?do=allow-leave", with(url.Values{"terms": {`{"rules":[{"offer":"call"}],"calls":2}`}})); status != http.StatusSeeOther {
		t.Fatalf("%d\n%s", status, body)
	}
	if all, err := h.fae.Rules().Mandates(t.Context(), false); err != nil || len(all) != 1 || all[0].Calls != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	if p := h.shell("make test"); !p.Allowed || p.Mandate.IsZero() {
		t.Errorf("the call again: %+v", p)
	}
}

// TestMandateIsNotGivenBeforeItIsSaid scrolls to the end of a long call, whose other buttons allow it then.
func TestMandateIsNotGivenBeforeItIsSaid(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	p := h.approveIn("/srv/shop", "pay", `{"amount":12.5,"note":"`+strings.Repeat(`a line of it\n`, 60)+`"}`)
	b := h.openBrowser()
	b.do(chromedp.EmulateViewport(390, 800))
	b.open("/forms/" + p.Form.String() + "?in=questions")
	once := asking(p) + " button[value=once]"
	b.reads(once, "Scroll to the end to allow")
	b.run(`document.querySelector("#item").scrollTop = 1e6`)
	b.until(fmt.Sprintf(`!document.querySelector(%q).disabled`, once))
	b.click("#alone .leave > summary")
	if got := b.text(`document.querySelector("[data-leaves]").disabled`); got != "true" {
		t.Error("what nobody has said may be given")
	}
	b.checkNoFaults()
}
