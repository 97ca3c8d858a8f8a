package slack

import (
	"strings"

	slackapi "github.com/slack-go/slack"

	"parley/gateway/bridge"
)

// action begins the IDs of buttons. An outcome follows.
const action = "parley-"

// escape has Slack show a text as it is: no mention, link or channel is made of it.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func options(fallback string, blocks []slackapi.Block) []slackapi.MsgOption {
	o := []slackapi.MsgOption{slackapi.MsgOptionText(fallback, false), slackapi.MsgOptionDisableLinkUnfurl(), slackapi.MsgOptionDisableMediaUnfurl()}
	if blocks != nil {
		o = append(o, slackapi.MsgOptionBlocks(blocks...))
	}
	return o
}

// opened returns the message of an open form. What others wrote is in elements whose text Slack does not parse: no
// character of a call vanishes as markup.
func (s *Slack) opened(n bridge.Notice) (fallback string, blocks []slackapi.Block) {
	head := "Question from " + n.From
	if n.Title != "" {
		head += ": " + n.Title
	}
	blocks = shown(head, n.Text)
	var buttons []slackapi.BlockElement
	for _, b := range n.Buttons {
		button := slackapi.NewButtonBlockElement(action+b.Outcome, s.passOf(n.Form.String(), b.Secret), plain(b.Label))
		switch b.Outcome {
		case "once", "answer":
			button.WithStyle(slackapi.StylePrimary)
		case "deny", "decline":
			button.WithStyle(slackapi.StyleDanger)
		}
		buttons = append(buttons, button)
	}
	if len(buttons) > 0 {
		blocks = append(blocks, slackapi.NewActionBlock("parley", buttons...))
	}
	foot := ""
	if n.Deadline != 0 {
		foot = "It waits until " + n.Deadline.String() + ". "
	}
	if n.Page != "" {
		foot += "<" + escape(n.Page) + "|The node's page>"
	}
	if foot != "" {
		blocks = append(blocks, slackapi.NewContextBlock("", slackapi.NewTextBlockObject(slackapi.MarkdownType, foot, false, true)))
	}
	return escape(head), blocks
}

// ended returns the message of a form that has ended, or waits for others.
func ended(n bridge.Notice) (fallback string, blocks []slackapi.Block) {
	head, text := n.Done()
	return escape(head), shown(head, text)
}

// shown returns the block of a head and a text, neither of which Slack parses.
func shown(head, text string) []slackapi.Block {
	elements := []slackapi.RichTextElement{slackapi.NewRichTextSection(literal(head, &slackapi.RichTextSectionTextStyle{Bold: true}))}
	if text != "" {
		elements = append(elements, &slackapi.RichTextPreformatted{Type: slackapi.RTEPreformatted, Elements: []slackapi.RichTextSectionElement{literal(text, nil)}})
	}
	return []slackapi.Block{slackapi.NewRichTextBlock("", elements...)}
}

func literal(text string, style *slackapi.RichTextSectionTextStyle) slackapi.RichTextSectionElement {
	return slackapi.NewRichTextSectionTextElement(text, style)
}

// plain returns a text in which Slack makes no emoji of :words:.
func plain(text string) *slackapi.TextBlockObject {
	return slackapi.NewTextBlockObject(slackapi.PlainTextType, text, false, false)
}
