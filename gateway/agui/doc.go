// Package agui serves AG-UI 1.0: a page runs an agent of the node, and gets the events of the run as a stream (SSE).
//
// A run is an exchange, see package exchange: the last message of the user is a form to the agent. Its answer is a text
// message and the result. The thread's and run's IDs are the form's key, so that the same run begins nothing new.
//
// If the agent asks the caller meanwhile, the run ends with an interrupt. The interrupt's ID names the exchange, the
// form and the form's revision. Its responseSchema is the JSON Schema of the form, and its reason is Reason. A run that
// resumes it answers the form, or declines it with the status cancelled. It goes on with the exchange. An answer that
// the form does not accept changes nothing: the run ends with the same interrupt and the reasons.
//
// Promised: a run lasts as long as its form. After a lost connection, a repeated request continues the same run. A
// repeated resume answers once, also after a restart. Texts of others have invisible characters escaped. The state,
// tools and context of a run do not reach the agent. An approval is not answered here.
package agui
