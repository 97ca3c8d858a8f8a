package slack

import (
	"strconv"

	slackapi "github.com/slack-go/slack"

	"parley/events"
	"parley/gateway/bridge"
	"parley/mailbox/form"
)

// Slack's bounds, in characters where they are of texts.
const (
	maxFields  = 40
	maxLabel   = 2000
	maxHint    = 2000
	maxInput   = 3000
	maxOptions = 100
	maxOption  = 75
)

// input is the ID of the element in each block of a field.
const input = "v"

// blockOf returns the ID of the block of a field.
func blockOf(field int) string { return "f" + strconv.Itoa(field) }

// Fits implements bridge.Listener. A form fits if each of its fields does.
func (s *Slack) Fits(n bridge.Notice) bool {
	for _, f := range n.Fields {
		if elementOf(f) == nil || len([]rune(labelOf(f))) > maxLabel || len([]rune(f.Help)) > maxHint {
			return false
		}
	}
	return len(n.Fields) > 0 && len(n.Fields) <= maxFields
}

func labelOf(f events.Field) string {
	if f.Label != "" {
		return f.Label
	}
	return f.Name
}

// elementOf returns the input for a field; nil if Slack has none. A default would have to be shown, and is left to the page.
func elementOf(f events.Field) slackapi.BlockElement {
	if !f.Default.IsNull() {
		return nil
	}
	switch asks := form.ControlOf(&f); asks {
	case form.Line, form.Lines:
		if form.TypeOf(f.Type).Format == "uri" {
			return slackapi.NewURLTextInputBlockElement(nil, input)
		}
		return slackapi.NewPlainTextInputBlockElement(nil, input).WithMaxLength(maxInput).WithMultiline(asks == form.Lines)
	case form.Any:
		if len(f.Pattern) == 0 {
			return slackapi.NewPlainTextInputBlockElement(nil, input).WithMaxLength(maxInput)
		}
	case form.Number:
		return slackapi.NewNumberInputBlockElement(nil, input, true)
	case form.YesNo:
		yes := optionsOf([]events.Option{{Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}})
		return slackapi.NewOptionsSelectBlockElement(slackapi.OptTypeStatic, nil, input, yes...)
	case form.Choices:
		if options := optionsOf(f.Options); options != nil {
			return slackapi.NewOptionsMultiSelectBlockElement(slackapi.MultiOptTypeStatic, nil, input, options...)
		}
	case form.Choice:
		if options := optionsOf(f.Options); options != nil {
			return slackapi.NewOptionsSelectBlockElement(slackapi.OptTypeStatic, nil, input, options...)
		}
	}
	return nil
}

// optionsOf returns the options of a field; nil if Slack cannot show them. The value of an option is its place.
func optionsOf(all []events.Option) []*slackapi.OptionBlockObject {
	if len(all) == 0 || len(all) > maxOptions {
		return nil
	}
	shown := make([]*slackapi.OptionBlockObject, len(all))
	for i, o := range all {
		label := o.Label
		if label == "" {
			label = o.Value
		}
		if label == "" || len([]rune(label)) > maxOption || len([]rune(o.Description)) > maxOption {
			return nil
		}
		var description *slackapi.TextBlockObject
		if o.Description != "" {
			description = plain(o.Description)
		}
		shown[i] = slackapi.NewOptionBlockObject(strconv.Itoa(i), plain(label), description)
	}
	return shown
}

// dialogOf returns the dialog that answers a form.
func dialogOf(n bridge.Notice, pass string) slackapi.ModalViewRequest {
	head := "Question from " + n.From
	if n.Title != "" {
		head += ": " + n.Title
	}
	blocks := shown(head, n.Text)
	for i, f := range n.Fields {
		var hint *slackapi.TextBlockObject
		if f.Help != "" {
			hint = plain(f.Help)
		}
		blocks = append(blocks, slackapi.NewInputBlock(blockOf(i), plain(labelOf(f)), hint, elementOf(f)).WithOptional(!f.Required))
	}
	return slackapi.ModalViewRequest{
		Type: slackapi.VTModal, Title: plain("Parley"), Submit: plain("Answer"), Close: plain("Cancel"),
		PrivateMetadata: pass, Blocks: slackapi.Blocks{BlockSet: blocks},
	}
}

// notAnswered returns the dialog that tells why an answer was not taken.
func notAnswered(why string) *slackapi.ViewSubmissionResponse {
	return slackapi.NewUpdateViewSubmissionResponse(&slackapi.ModalViewRequest{
		Type: slackapi.VTModal, Title: plain("Not answered"), Close: plain("Close"), Blocks: slackapi.Blocks{BlockSet: shown("Not answered", why)},
	})
}

// textsOf returns what a user has put into a dialog. A field that was left empty has none.
func textsOf(fields []events.Field, state *slackapi.ViewState) (texts []events.FieldText) {
	if state == nil {
		return nil
	}
	for i, f := range fields {
		given := state.Values[blockOf(i)][input]
		chosen := given.SelectedOptions
		if given.SelectedOption.Value != "" {
			chosen = append(chosen, given.SelectedOption)
		}
		for _, o := range chosen {
			texts = append(texts, events.FieldText{Name: f.Name, Text: chosenOf(f, o.Value)})
		}
		if given.Value != "" {
			texts = append(texts, events.FieldText{Name: f.Name, Text: given.Value})
		}
	}
	return texts
}

// chosenOf returns the value of a field's option by its place.
func chosenOf(f events.Field, place string) string {
	i, err := strconv.Atoi(place)
	if form.ControlOf(&f) == form.YesNo {
		return strconv.FormatBool(i == 0 && err == nil)
	}
	if err != nil || i < 0 || i >= len(f.Options) {
		return place // the form's home refuses it
	}
	return f.Options[i].Value
}
