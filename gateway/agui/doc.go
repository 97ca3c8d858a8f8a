// Package agui serves AG-UI 1.0: a page runs an agent of the node, and gets the events of the run as a stream (SSE).
//
// A run is an exchange, see package exchange: the last message of the user is a form to the agent, and its answer a text
// message and the result. The thread's and run's IDs are the form's key, so that the same run begins nothing new.
//
// If the agent asks the caller meanwhile, the run ends with an interrupt. Its ID names the exchange, the form and the
// form's revision, its responseSchema is the JSON Schema of the form, and its reason is Reason. A run that resumes it
// answers the form, or declines it with the status cancelled, and goes on with the exchange. An answer that the form does
// not accept changes nothing: the run ends with the same interrupt and the reasons.
//
// Promised: a run lasts as long as its form. A connection that was lost is taken up by the same run again, and a resume
// that is repeated answers once, also after a restart. Texts of others have invisible characters escaped. Not promised:
// state, tools and context of a run reach the agent, and an approval is answered here.
package agui
