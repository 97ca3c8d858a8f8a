// Package modeltest answers coding agents in place of a language model.
//
// A Server speaks Anthropic's Messages API and OpenAI's Responses API, both with streaming. It replays the turns of
// scripts: text and tool calls. It finds a request's script by the prompt, and the turn by the number of answers in the
// request. So a repeated request gets the same answer. It keeps what each tool returned, and collects what a request
// has wrong. Where the automatic mode of Claude Code has the server judge calls, none is dangerous. It knows no other endpoint, counts no tokens and samples nothing.
package modeltest
