package hook

import (
	"encoding/json"
	"maps"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
)

func TestQuestionsThatWouldBeMisreadAreLeft(t *testing.T) {
	for input, want := range map[string]bool{
		`{"questions":[{"question":"Q","options":[{"label":"a, b"},{"label":"c"}]}]}`:                                         true,
		`{"questions":[{"question":"Q","multiSelect":true,"options":[{"label":"a, b"},{"label":"c"}]}]}`:                      false,
		`{"questions":[{"question":"Q","options":[{"label":"a"},{"label":"a"}]}]}`:                                            false,
		`{"questions":[{"question":"Q","options":[{"label":"a"}]},{"question":"Q","options":[{"label":"a"},{"label":"b"}]}]}`: false,
		`{"questions":[{"question":"Q","options":[]}]}`:                                                                       false,
		`{"questions":[]}`: false,
		`[]`:               false,
	} {
		if _, err := readQuestions(json.RawMessage(input)); (err == nil) != want {
			t.Errorf("%s: %v", input, err)
		}
	}
}

func TestAnswersKeepOtherWords(t *testing.T) {
	questions, err := readQuestions(json.RawMessage(`{"questions":[
		{"question":"One","options":[{"label":"a"},{"label":"b"}]},
		{"question":"Two","options":[{"label":"a"},{"label":"b"}]},
		{"question":"Three","multiSelect":true,"options":[{"label":"a"},{"label":"b"}]},
		{"question":"Four","options":[{"label":"a"},{"label":"Other"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text := capabilities.String
	got := answersOf(questions, view.Outcome{Status: view.StatusAnswered, Values: capabilities.Record(map[string]capabilities.Value{
		"q1": text("Other"), "q1_other": text("neither"), "q2": text("b"), "q2_other": text("but later"),
		"q3": capabilities.Strings("a", "b"), "q3_other": text("c"), "q4": text("Other"),
	})})
	want := map[string]string{"One": "neither", "Two": "b (but later)", "Three": "a, b, c", "Four": "Other"}
	if !maps.Equal(got, want) {
		t.Errorf("answers %v", got)
	}
}
