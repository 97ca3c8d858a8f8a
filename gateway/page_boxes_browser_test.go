package gateway

import (
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// overlaps is an expression for the parts of the page that lie over another or beyond the edge, or are faint. Boxes are those that can
// be seen, after all that scrolls or clips around them. What is stuck to an edge is compared with what is stuck there too.
const overlaps = `(() => {
	const wrong = [], wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > wide) wrong.push("the page scrolls sideways");
	const parts = ".rail > *, .rail a, .entry > a > *, .decisions td, .decisions .call-of > *, .list-bar > *, .head > *, #alone article > *, #alone article p, #alone :is(h2, h3), #alone .bar :is(button, summary), #alone .cap > *, #alone :is(th, td), .tabbar a, .filters a, .tree a, label.choice, .post > *, .writer .line > *, .write > *, .ballot li > *, .named li, .access td, .needs-passkey";
	const seen = [...document.querySelectorAll(parts)].filter((e) => e.checkVisibility() && e.getClientRects().length && !e.matches(".sr, .sr *") && getComputedStyle(e).position !== "absolute");
	const clipped = (e) => {
		let { left, top, right, bottom } = e.getBoundingClientRect();
		for (let p = e.parentElement; p; p = p.parentElement) {
			const { overflowX, overflowY } = getComputedStyle(p);
			if (!/auto|scroll|hidden|clip/.test(overflowX + overflowY)) continue;
			const box = p.getBoundingClientRect();
			[left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
		}
		return { left, top, right, bottom };
	};
	const stuck = (e) => { for (let p = e; p; p = p.parentElement) if (/sticky|fixed/.test(getComputedStyle(p).position)) return p; return null; };
	const boxes = seen.map((e) => ({ e, box: clipped(e), on: stuck(e) })).filter(({ box }) => box.right - box.left > 1 && box.bottom - box.top > 1);
	boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
		if (a.on !== b.on || a.e.contains(b.e) || b.e.contains(a.e)) return;
		const x = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left), y = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
		if (x > 2 && y > 2) wrong.push(a.e.tagName + "." + a.e.className + " lies over " + b.e.tagName + "." + b.e.className + " " + b.e.innerText.slice(0, 20));
	}));
	for (const e of document.querySelectorAll("main *")) {
		if (!e.checkVisibility()) continue;
		if (getComputedStyle(e).opacity !== "1" && !e.matches(".pick, .pick *")) wrong.push(e.tagName + "." + e.className + " is faint");
		if (e.getBoundingClientRect().right > wide + 1 && !e.closest(".filters, .tree, .sr, .wide, pre")) wrong.push(e.tagName + "." + e.className + " is beyond the edge");
	}
	return [...new Set(wrong)].slice(0, 8).join("; ");
})()`

// looksRight reports what lies over another part, or what axe finds, of the open page in both themes, wide and narrow. It leaves the page 1280 px wide.
func (b *tab) looksRight(screen string) {
	b.t.Helper()
	source, err := os.ReadFile(axePath(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, size := range [][2]int64{{1440, 900}, {390, 844}, {1280, 800}} {
		b.do(chromedp.EmulateViewport(size[0], size[1]))
		for _, theme := range []string{"dark", "light"} {
			b.prefer(theme)
			b.shotIfWanted(fmt.Sprintf("%s-%d-%s", screen, size[0], theme))
			if wrong := b.text(overlaps); wrong != "" {
				b.t.Errorf("%s at %d px, %s: %s", screen, size[0], theme, wrong)
			}
			if found := b.violations(string(source)); found != "" {
				b.t.Errorf("%s at %d px, %s: %s", screen, size[0], theme, found)
			}
		}
	}
}

// TestScreensKeepTheirPartsApart looks at screens before and after acts, at four widths in both themes, with 30 agents. By day each width has
// one theme.
func TestScreensKeepTheirPartsApart(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	host := h.node.Host()
	for i := range 30 {
		if _, err := host.Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: fmt.Sprintf("agent-with-a-long-name-%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	h.decide(h.shell("git push origin next"), "once")
	var group capabilities.ID
	for i := range 12 {
		group = h.approveIn("/srv/shop", "mcp__postgres__migrate", fmt.Sprintf(`{"table":"table_with_a_long_name_%d","rows":%d,"to":"v2"}`, i, 7+i*i*i*900)).Form
	}
	edit := h.approveEditable(`{"command":"rm -rf build && make release"}`).Form
	votes, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "deploy", Input: `{"environment":"production"}`}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.passOn(h.second(), votes.Form)
	first := h.post(h.fae, mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Subject: "Order of next week's work, and of the one after that"}, Text: "May the migration go **first**?\n\nTuesday is full."}})
	h.post(host, mailbox.PostMessage{Reply: capabilities.FormID(first.Message), Post: parley.Post{Text: "It may."}})
	axe := ""
	if path := os.Getenv("PARLEY_AXE"); path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		axe = string(text)
	}
	b := h.openBrowser()
	for _, theme := range []string{"light", "dark"} {
		b.prefer(theme)
		for i, size := range [][2]int64{{1440, 900}, {1024, 768}, {768, 1024}, {390, 844}} {
			if (i%2 == 0) != (theme == "light") && os.Getenv("PARLEY_NIGHTLY") == "" {
				continue
			}
			b.do(chromedp.EmulateViewport(size[0], size[1]))
			look := func(screen string) {
				t.Helper()
				b.shotIfWanted(fmt.Sprintf("%s-%d-%s", screen, size[0], theme))
				if wrong := b.text(overlaps); wrong != "" {
					t.Errorf("%s at %d px, %s: %s", screen, size[0], theme, wrong)
				}
				if axe == "" {
					return
				}
				if found := b.violations(axe); found != "" {
					t.Errorf("%s at %d px, %s: %s", screen, size[0], theme, found)
				}
			}
			open := func(path string) {
				t.Helper()
				b.open(path)
				b.live()
			}
			open("/forms/" + group.String() + "?in=questions&like=yes")
			b.reads("#alone .of-all", "12 of 12")
			look("group")
			b.run(`document.querySelector("#alone .member input").click(); document.querySelector("#alone .why").open = true`)
			b.reads("#alone .of-all", "11 of 12")
			look("group-denied")
			open("/forms/" + edit.String() + "?in=questions")
			look("call")
			b.run(`document.querySelector("#alone details.edit").open = true`)
			b.fill("#alone .edit-card textarea", "mv build build.old && make release")
			b.reads("#alone .change", "build.old")
			look("edit")
			b.run(`document.querySelector("#alone details.edit").open = false`)
			b.until(`!document.querySelector("#alone .edit-card").checkVisibility()`)
			open("/forms/" + votes.Form.String() + "?in=questions")
			b.reads("#alone .ballot", "Your turn")
			look("votes")
			open("/forms/" + first.Message.String() + "?in=mail")
			b.reads("#alone .posts", "It may.")
			look("thread")
			open("/new")
			look("new")
			open("/history")
			look("history")
			open("/access")
			b.until(`document.querySelectorAll(".named li").length >= 30`)
			look("access")
		}
	}
	b.checkNoFaults()
}
